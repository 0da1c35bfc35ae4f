/** Every fault planted in a data directory is found, and no other finding is reported. */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { checkData, checkRoom } from '../../../core/maintenance/doctor.ts';
import type { Finding } from '../../../proto/common/diagnostics.ts';
import type { Env } from '../../../proto/common/env.ts';
import { sealedFor } from '../../support/clients/seal.ts';
import { sameDatabaseOf } from '../../support/engine.ts';
import { tempDirectory } from '../../support/temp.ts';
import { boot } from '../boot.ts';

const test = suite('core/maintenance/doctor');

async function look(
  dir: string,
  now: () => number = Date.now,
  { isDeep = false, ...env }: { isDeep?: boolean; [name: string]: unknown } = {},
): Promise<Finding[]> {
  const found: Finding[] = [];
  const settings = { TABERN_DATA: dir, ...sameDatabaseOf(dir), ...env } as Env;
  for await (const one of checkData(settings, { now, isDeep })) found.push(one);
  return found;
}

const wrong = (found: readonly Finding[]) =>
  found.filter(({ level }) => level !== 'ok').map(({ check, level }) => `${level} ${check}`);

test('a directory in use, and a missing one, have no problem', async () => {
  await using app = await boot();
  await app.upload('bytes');
  const { secrets } = app.clients;
  const sealed = sealedFor(await secrets.getSecretsKeypair({}, app.asProject), 'value');
  await secrets.createSecret({ secretKey: 'TOKEN', ...sealed }, app.asProject);
  const found = await look(app.dir, app.clock.now);
  assert.equal(wrong(found), [], JSON.stringify(found));
  assert.equal(
    found.map(({ check }) => check),
    ['settings', 'data', 'disk', 'fsync', 'keys', 'database', 'master key', 'files', 'clock'],
  );
  const before = readFileSync(join(app.dir, 'keys', 'master.key'), 'utf8');
  await app.clients.contexts.createContext({ name: 'a' }, app.asProject);
  assert.is(readFileSync(join(app.dir, 'keys', 'master.key'), 'utf8'), before);
  await using none = tempDirectory();
  assert.equal(wrong(await look(join(none.path, 'a', 'b'))), []);
});

test('a wrong, a missing and a readable master key are different findings', async () => {
  await using app = await boot();
  const path = join(app.dir, 'keys', 'master.key');
  chmodSync(path, 0o644);
  assert.equal(wrong(await look(app.dir, app.clock.now)), ['warn master key']);
  writeFileSync(path, Buffer.alloc(32, 1).toString('base64'));
  const other = (await look(app.dir, app.clock.now)).find(({ check }) => check === 'master key');
  assert.is(other?.level, 'fail');
  assert.match(other?.says ?? '', /is not the key of this database/);
  assert.match(other?.fix ?? '', /put the key that this directory had/);
  rmSync(path);
  assert.equal(wrong(await look(app.dir, app.clock.now)), ['fail master key']);
});

test('each file of keys/ is checked for length, format and mode', async () => {
  await using app = await boot();
  const keys = join(app.dir, 'keys');
  const found = async () =>
    (await look(app.dir, app.clock.now)).filter(({ check }) => check === 'keys');
  const tokens = ['runner.token', 'gateway.token', 'operator.token'];
  writeFileSync(join(keys, 'runner.id'), randomUUID(), { mode: 0o600 });
  assert.equal(wrong(await found()), []);
  for (const [name, text, level] of [
    ...tokens.map((token) => [token, '', 'fail'] as const),
    ...tokens.map((token) => [token, '\0'.repeat(43), 'fail'] as const),
    ['runner.token.next', '', 'fail'],
    ['runner.id', '', 'warn'],
    ['runner.id', '\0'.repeat(37), 'warn'],
    ['master.key.new', 'left by a process that was killed', 'warn'],
  ] as const) {
    const path = join(keys, name);
    const before = existsSync(path) ? readFileSync(path) : undefined;
    writeFileSync(path, text);
    const [one, ...more] = await found();
    assert.is(one?.level, level, `${name} ${JSON.stringify(text)}`);
    assert.equal(more, []);
    assert.ok(one?.says.includes(name), one?.says);
    assert.match(one?.fix ?? '', /\w/);
    if (before) writeFileSync(path, before);
    else rmSync(path);
  }
  const next = join(keys, 'gateway.token.next');
  writeFileSync(next, 'n'.repeat(43), { mode: 0o600 });
  const old = Date.now() / 1_000 - 3 * 86_400 - 60;
  utimesSync(next, old, old);
  const [forgotten] = await found();
  assert.is(forgotten?.level, 'warn');
  assert.match(
    forgotten?.says ?? '',
    /gateway\.token\.next is accepted besides gateway\.token, for 3 days/,
  );
  assert.match(forgotten?.fix ?? '', /`tabern tokens finish gateway`/);
  rmSync(next);
  chmodSync(join(keys, 'gateway.token'), 0o640);
  assert.equal(wrong(await found()), ['warn keys']);
  chmodSync(join(keys, 'gateway.token'), 0o600);
  chmodSync(keys, 0o755);
  assert.equal(wrong(await found()), ['warn keys']);
  chmodSync(keys, 0o700);
  assert.equal(wrong(await found()), []);
});

test('a damaged database is found, with the fix to restore', async () => {
  await using app = await boot();
  await using target = tempDirectory();
  const db = new Sqlite(join(app.dir, 'tabern.db'), { readonly: true });
  await db.backup(join(target.path, 'tabern.db'));
  db.close();
  const path = join(target.path, 'tabern.db');
  const bytes = readFileSync(path);
  bytes.fill(0xaa, 4_096 * 3, 4_096 * 6);
  writeFileSync(path, bytes);
  const found = await look(target.path, app.clock.now);
  assert.equal(wrong(found), ['fail database'], JSON.stringify(found));
  assert.match(found.find(({ check }) => check === 'database')?.fix ?? '', /tabern restore/);
  writeFileSync(path, 'no database at all, but longer than the header of one is'.repeat(10));
  assert.equal(wrong(await look(target.path, app.clock.now)), ['fail database']);
});

test('missing and truncated files are named', async () => {
  await using app = await boot();
  const [one, other] = [await app.upload('some bytes'), await app.upload('more bytes')];
  rmSync(join(app.dir, 'blobs', one));
  truncateSync(join(app.dir, 'blobs', other), 2);
  const found = await look(app.dir, app.clock.now);
  assert.equal(wrong(found), ['fail files']);
  const { says = '' } = found.find(({ check }) => check === 'files') ?? {};
  assert.ok(says.startsWith('2 are not there') && says.includes(one) && says.includes(other), says);
});

test('a database that fails while files are looked for is found', async () => {
  await using app = await boot();
  await app.upload('some bytes');
  await using target = tempDirectory(); // has no files
  const path = join(target.path, 'tabern.db');
  const db = new Sqlite(join(app.dir, 'tabern.db'), { readonly: true });
  await db.backup(path);
  db.close();
  cpSync(join(app.dir, 'keys'), join(target.path, 'keys'), { recursive: true });
  chmodSync(join(target.path, 'keys'), 0o700);
  const found: Finding[] = [];
  for await (const one of checkData({ TABERN_DATA: target.path }, { now: app.clock.now })) {
    found.push(one);
    if (one.check === 'master key') writeFileSync(path, 'no database any more'.repeat(30));
  }
  assert.equal(wrong(found), ['fail database'], JSON.stringify(found));
});

test('a deep check finds a file with changed bytes', async () => {
  await using app = await boot();
  const id = await app.upload('some bytes');
  assert.equal(wrong(await look(app.dir, app.clock.now, { isDeep: true })), []);
  writeFileSync(join(app.dir, 'blobs', id), 'some bytez');
  assert.equal(wrong(await look(app.dir, app.clock.now)), []);
  const found = await look(app.dir, app.clock.now, { isDeep: true });
  assert.equal(wrong(found), ['fail files']);
  assert.ok(found.find(({ check }) => check === 'files')?.says.includes(id));
});

test('an unset clock fails, a clock that was set back is a warning', async () => {
  await using app = await boot();
  assert.equal(wrong(await look(app.dir, () => 0)), ['fail clock']);
  const behind = () => app.clock.now() - 3_600_000;
  assert.equal(wrong(await look(app.dir, behind)), ['warn clock']);
});

test('a full disk, a directory that cannot be written and a wrong setting fail', async () => {
  const mib = 1 << 20;
  for (const [freeMib, level] of [
    [100, 'fail'],
    [600, 'warn'],
    [10_000, 'ok'],
  ] as const) {
    assert.is((await checkRoom('/', async () => freeMib * mib)).level, level);
  }
  await using dir = tempDirectory();
  const file = join(dir.path, 'file');
  writeFileSync(file, '');
  for (const place of ['/proc/tabern', file, join(file, 'data')]) {
    assert.equal(wrong(await look(place)), ['fail data'], place);
  }
  assert.equal(wrong(await look(dir.path, undefined, { TABERN_QUEUE_MAX: 'x' })), [
    'fail settings',
  ]);
});

test.run();
