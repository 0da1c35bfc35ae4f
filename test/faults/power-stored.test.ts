/**
 * power-loss: a restore and a migration are complete or not begun; a context has its last
 * acknowledged content or a later one, intact. A process writes to a separate disk, which loses its
 * power after an acknowledgement or at some moment before.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../core/common/ids.ts';
import { openSealer } from '../../core/common/sealer.ts';
import { inspect } from '../../core/store/sqlite/engine/inspect.ts';
import { openDatabase } from '../../core/store/sqlite/engine/open.ts';
import { must } from '../../proto/common/must.ts';
import { boot } from '../core/boot.ts';
import { ENGINES, openBench, T0 } from '../core/store/engines.ts';
import { until } from '../support/poll.ts';
import { tempDirectory } from '../support/temp.ts';
import { type Disk, hasDisks, openDisk } from './disk.ts';

const power = suite('power-stored');
const CHILD = fileURLToPath(new URL('./power-child.ts', import.meta.url));
const RELEASE = join(import.meta.dirname, '../core/store/upgrade/0.1.0.sql');
/** In milliseconds after the process has begun; undefined: when the process reports its end. */
const MOMENTS = [undefined, 10, 60] as const;
const SAVES_MIN = 30;

/** Runs the child until then, cuts the power, and returns the lines that the child printed. */
async function lost(
  disk: Disk,
  args: string[],
  when: (lines: string[]) => boolean | Promise<boolean>,
): Promise<string[]> {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  await using _ = { [Symbol.asyncDispose]: () => ended(child) };
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  const lines = () => text.split('\n').slice(0, -1);
  await until(() => when(lines()));
  const said = lines(); // later lines may be about a disk without power
  disk.losePower();
  await ended(child);
  disk.mountAgain();
  return said.slice(1);
}

function at(moment: number | undefined) {
  return async (lines: string[]) => {
    if (moment === undefined) return lines.length > 1;
    if (lines.length === 0) return false;
    await sleep(moment);
    return true;
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}

/** The errors of a data directory: its database, its files, its key. */
function problemsOf(dataDir: string): string[] {
  const { problems, blobs, masterKeyCheck } = inspect(join(dataDir, 'tabern.db'));
  const damaged = blobs.filter(({ id, sha256 }) => hashOf(join(dataDir, 'blobs', id)) !== sha256);
  openSealer(join(dataDir, 'keys', 'master.key'), masterKeyCheck);
  return [...problems, ...damaged.map(({ id }) => `blob ${id}`)];
}

function hashOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

async function backupIn(dir: string): Promise<string> {
  await using app = await boot();
  for (let n = 0; n < 20; n += 1) await app.upload(`archive ${n} `.repeat(5_000));
  const { operators } = app.clients;
  const chunks: Buffer[] = [];
  for await (const { part } of operators.createBackup({ withMasterKey: true }, app.asOperator)) {
    if (part?.$case === 'chunk') chunks.push(Buffer.from(part.value));
  }
  writeFileSync(join(dir, 'backup.tar'), Buffer.concat(chunks));
  return join(dir, 'backup.tar');
}

power('without a loss of power, a restored data directory has no problems', async () => {
  await using dir = tempDirectory(); // also without such a disk
  const dataDir = join(dir.path, 'data');
  const child = spawn(process.execPath, [CHILD, 'restore', dataDir, await backupIn(dir.path)]);
  await using _ = { [Symbol.asyncDispose]: () => ended(child) };
  await until(() => existsSync(join(dataDir, 'tabern.db')));
  assert.equal(problemsOf(dataDir), []);
});

for (const moment of hasDisks() ? MOMENTS : []) {
  const when = moment === undefined ? 'after its end' : `after ${moment} ms`;
  power(`power-loss ${when}: a restore is complete, or has no database`, async () => {
    await using dir = tempDirectory();
    const tar = await backupIn(dir.path);
    await using disk = openDisk();
    const dataDir = join(disk.path, 'restored');
    const said = await lost(disk, ['restore', dataDir, tar], at(moment));
    if (said.includes('restored')) assert.ok(existsSync(join(dataDir, 'tabern.db')));
    if (existsSync(join(dataDir, 'tabern.db'))) assert.equal(problemsOf(dataDir), []);
  });

  power(`power-loss ${when}: each step of a migration is done or not begun`, async () => {
    await using disk = openDisk();
    const dir = join(disk.path, 'data');
    mkdirSync(dir);
    const before = new Sqlite(join(dir, 'tabern.db'));
    before.exec(readFileSync(RELEASE, 'utf8'));
    const count = (db: Sqlite.Database) =>
      db
        .prepare('SELECT (SELECT COUNT(*) FROM sessions), (SELECT COUNT(*) FROM blobs)')
        .raw()
        .get();
    const rows = count(before);
    const steps = 'SELECT number FROM migrations ORDER BY number';
    const done = before.prepare(steps).pluck().all();
    before.close();
    disk.sync();
    const said = await lost(disk, ['migrate', dir], at(moment));
    const left = new Sqlite(join(dir, 'tabern.db'));
    const now = left.prepare(steps).pluck().all();
    left.close();
    assert.equal(now.slice(0, done.length), done);
    if (said.includes('migrated')) assert.ok(now.length > done.length, 'it was acknowledged');
    const { db, close } = openDatabase({ dir, durability: 'full' });
    assert.is(db.pragma('integrity_check', { simple: true }), 'ok');
    assert.equal(count(db), rows);
    close();
  });
}

if (hasDisks()) {
  power('power-loss: a context has its last acknowledged content or a later one', async () => {
    await using bench = await openBench(must(ENGINES[0], 'engine'));
    const projectId = await bench.project('p');
    const [id, pairId] = [newId(), newId()];
    const pair = { publicKey: 'public', privateKey: Buffer.from('sealed'), at: T0 };
    await bench.store.addKeyPair({ ...pair, id: pairId });
    await bench.store.createContext({ id, projectId, name: null, nameKey: null, at: T0 });
    await bench.store.close();
    await using disk = openDisk();
    const dir = join(disk.path, 'data');
    cpSync(bench.dir, dir, { recursive: true });
    disk.sync();
    const saved = await lost(disk, ['save', dir, projectId, id], (lines) => {
      return lines.length > SAVES_MIN;
    });
    const db = new Sqlite(join(dir, 'tabern.db'));
    const content = db.prepare('SELECT blob_id FROM contexts WHERE id = ?').pluck().get(id);
    const row = db.prepare('SELECT sha256 FROM blobs WHERE id = ?').pluck().get(content);
    db.close();
    // ids contain their time: a later id is a save whose acknowledgement was not printed
    assert.ok(String(content) >= must(saved.at(-1), 'a save'), `${content} of ${saved.at(-1)}`);
    assert.is(hashOf(join(dir, 'blobs', String(content))), row);
  });
}

power.run();
