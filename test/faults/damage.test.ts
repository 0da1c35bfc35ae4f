/**
 * A damaged database, found after an unclean end: exit code 70 once (a restart may help), then 78
 * with the restore command. `tabern core` runs as a real command.
 */
import { existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore, tabern } from '../support/service/command.ts';
import { tempDirectory } from '../support/temp.ts';

const test = suite('damage');
const STORAGE = 70;
const OPERATOR = 78;

/** Starts and ends core cleanly, starts it again and kills it. */
async function killedCore(dataDir: string): Promise<void> {
  const env = { TABERN_DATA: dataDir };
  {
    await using _ = await startCore(env);
  }
  const { run } = await startCore(env);
  run.child.kill('SIGKILL');
  await run.ended;
  assert.ok(existsSync(join(dataDir, 'tabern.db-wal')));
}

/** Overwrites the first page of a table that is not read at the start. */
function spoil(dataDir: string): { repair(): void } {
  const path = join(dataDir, 'tabern.db');
  const db = new Sqlite(path, { readonly: true });
  const [page, size] = [
    db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'log_lines'").pluck().get(),
    db.pragma('page_size', { simple: true }),
  ].map(Number) as [number, number];
  db.close();
  const before = readFileSync(path).subarray((page - 1) * size, page * size);
  const write = (bytes: Uint8Array) =>
    void writeSync(openSync(path, 'r+'), bytes, 0, size, (page - 1) * size);
  write(Buffer.alloc(size, 0xaa));
  return { repair: () => write(before) };
}

test('a damaged database ends core with 70, then with 78 and the restore command', async () => {
  await using dir = tempDirectory();
  const dataDir = join(dir.path, 'data');
  await killedCore(dataDir);
  spoil(dataDir);
  const first = await tabern(['core'], { TABERN_DATA: dataDir }).ended;
  assert.is(first.code, STORAGE, first.err);
  const second = await tabern(['core'], { TABERN_DATA: dataDir }).ended;
  assert.is(second.code, OPERATOR, second.err);
  assert.match(second.err, /^tabern: .*damaged.*tabern restore .* --data /m);
  assert.not.match(second.out, /core\.sock/, 'it did not serve');
  const third = await tabern(['core'], { TABERN_DATA: dataDir }).ended;
  assert.is(third.code, OPERATOR, third.err);
});

test('a damaged header of the database ends core with 70, then with 78', async () => {
  await using dir = tempDirectory();
  const dataDir = join(dir.path, 'data');
  {
    await using _ = await startCore({ TABERN_DATA: dataDir });
  }
  writeSync(openSync(join(dataDir, 'tabern.db'), 'r+'), Buffer.alloc(200, 0xaa), 0, 200, 0);
  const first = await tabern(['core'], { TABERN_DATA: dataDir }).ended;
  assert.is(first.code, STORAGE, first.err);
  const second = await tabern(['core'], { TABERN_DATA: dataDir }).ended;
  assert.is(second.code, OPERATOR, second.err);
  assert.match(second.err, /tabern restore/);
});

test('a repaired database serves, and a clean end clears the mark of damage', async () => {
  await using dir = tempDirectory();
  const dataDir = join(dir.path, 'data');
  await killedCore(dataDir);
  const { repair } = spoil(dataDir);
  assert.is((await tabern(['core'], { TABERN_DATA: dataDir }).ended).code, STORAGE);
  assert.ok(existsSync(join(dataDir, 'damaged')));
  repair();
  {
    await using _ = await startCore({ TABERN_DATA: dataDir });
  }
  assert.not.ok(existsSync(join(dataDir, 'damaged')));
  await killedCore(dataDir);
  spoil(dataDir);
  assert.is((await tabern(['core'], { TABERN_DATA: dataDir }).ended).code, STORAGE, 'the first');
});

test.run();
