/** A backup that is taken while core works restores to the same objects, a damaged one to none. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import Sqlite from 'better-sqlite3';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import { startCore } from '../../../core/main.ts';
import { offlineBackup } from '../../../core/maintenance/backup/offline.ts';
import { restoreBackup } from '../../../core/maintenance/backup/restore.ts';
import { ConfigError } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import type { InvocationWork } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { sealedFor } from '../../support/clients/seal.ts';
import { faultOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';
import { type Booted, boot, configOn, HOLDER, KEY } from '../boot.ts';

const test = suite('core/backup');
const asProject = { metadata: { 'x-svc-api-key': KEY } };

/** A whole backup over the operator's client. */
async function taken({ clients, asOperator }: Booted, withMasterKey = true): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const { part } of clients.operators.createBackup({ withMasterKey }, asOperator)) {
    if (part?.$case === 'chunk') chunks.push(Buffer.from(part.value));
  }
  return Buffer.concat(chunks);
}

const streamOf = (bytes: Buffer) => Readable.from([bytes]) as AsyncIterable<Buffer>;

async function refused(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error('was not refused');
}

/** At the tests' own time, or all would be too old and go. */
async function coreOn(dataDir: string, now = Date.now) {
  const config = configOn(dataDir, { TABERN_API_KEY: KEY });
  return startCore(config, openLog({ role: 'core', level: 'silent' }), { now });
}

test('a restored directory has all data of the backup, and serves', async () => {
  await using app = await boot();
  const functionId = await app.publish({ name: 'title' });
  const { id: contextId } = await app.clients.contexts.createContext({ name: 'login' }, asProject);
  const invocation = await app.invoke(functionId, { a: 1 });
  const blobId = await app.upload('some bytes of an archive');
  const tar = await taken(app);

  await using target = tempDirectory();
  const dataDir = join(target.path, 'restored');
  const { manifest, hasMasterKey } = await restoreBackup({ bytes: streamOf(tar), dataDir });
  assert.ok(hasMasterKey);
  assert.equal(manifest.missing, []);
  assert.is(manifest.blobs, readdirSync(join(app.dir, 'blobs')).length);
  await using core = await coreOn(dataDir, app.clock.now);
  const { clients } = core;
  const functions = await clients.functions.getFunction({ id: functionId }, asProject);
  const before = await app.clients.functions.getFunction({ id: functionId }, asProject);
  assert.equal(functions, before);
  const again = await clients.contexts.getContext({ id: contextId }, asProject);
  assert.equal(again, await app.clients.contexts.getContext({ id: contextId }, asProject));
  const { id } = invocation;
  const read = await clients.invocations.getInvocation({ id }, asProject);
  assert.equal(read.invocation?.params, { a: 1 });
  const blob = clients.blobs.readBlob({ blobId, url: undefined } as never, asProject);
  const chunks = [];
  for await (const { chunk } of blob) chunks.push(chunk);
  assert.is(String(Buffer.concat(chunks)), 'some bytes of an archive');
});

test('a restored core opens the secrets of functions; a backup has them only sealed', async () => {
  const value = 'a-value-that-is-marked-9d21';
  await using app = await boot();
  const { secrets } = app.clients;
  const functionId = await app.publish({ name: 'keeper' });
  const pair = await secrets.getSecretsKeypair({}, asProject);
  const given = sealedFor(pair, value);
  const { secret } = await secrets.createSecret({ secretKey: 'TOKEN', ...given }, asProject);
  const secretId = secret?.id ?? '';
  await secrets.attachSecret({ functionId, secretId }, asProject);
  await app.invoke(functionId);
  const tar = await taken(app);
  assert.not.ok(tar.includes(value));

  await using target = tempDirectory();
  const dataDir = join(target.path, 'restored');
  await restoreBackup({ bytes: streamOf(tar), dataDir });
  await using core = await coreOn(dataDir, app.clock.now);
  const { clients } = core;
  assert.equal(await clients.secrets.getSecretsKeypair({}, asProject), pair);
  const token = readFileSync(join(dataDir, 'keys', 'runner.token'), 'utf8').trim();
  const asRunner = { metadata: { authorization: `Bearer ${token}` } };
  await clients.runners.registerRunner(HOLDER, asRunner);
  const wanted = { ...HOLDER, kind: 'INVOCATION', max: 1, waitMs: 0 } as const;
  const { work } = await clients.runners.leaseWork(wanted, asRunner);
  const invocation = work[0]?.item?.value as InvocationWork;
  assert.equal(invocation.secrets, [{ secretKey: 'TOKEN', value }]);
});

test('with concurrent writers each restored row has its blob', async () => {
  await using app = await boot();
  const over = new AbortController();
  const writers = [1, 2, 3].map(async () => {
    const ids: string[] = [];
    for (let n = 0; !over.signal.aborted; n++) {
      ids.push(await app.upload(`bytes ${n}`));
      const { asOperator, clients } = app;
      await clients.operators.createApiKey({ project: 'default', name: `${n}` }, asOperator);
    }
    return ids;
  });
  const tars = [await taken(app), await taken(app), await taken(app)];
  over.abort();
  const acknowledged = (await Promise.all(writers)).flat();
  await using target = tempDirectory();
  for (const [n, tar] of tars.entries()) {
    const dataDir = join(target.path, String(n));
    const { manifest } = await restoreBackup({ bytes: streamOf(tar), dataDir });
    assert.equal(manifest.missing, []);
    assert.ok(manifest.blobs <= acknowledged.length);
  }
});

test('without the master key no secret opens; it may be provided separately', async () => {
  await using app = await boot();
  await app.clients.contexts.createContext({ name: 'login' }, asProject);
  const tar = await taken(app, false);
  const masterKey = readFileSync(join(app.dir, 'keys', 'master.key'), 'utf8');
  assert.not.ok(tar.includes(masterKey.trim()));
  await using target = tempDirectory();
  const bare = join(target.path, 'bare');
  assert.not.ok((await restoreBackup({ bytes: streamOf(tar), dataDir: bare })).hasMasterKey);
  assert.match(await refused(coreOn(bare)), /master\.key is missing/);
  const wrong = Buffer.alloc(32, 1).toString('base64');
  const dataDir = join(target.path, 'whole');
  const message = await refused(restoreBackup({ bytes: streamOf(tar), dataDir, masterKey: wrong }));
  assert.match(message, /is not the key of this database/);
  assert.not.ok(existsSync(dataDir), 'nothing is left');
  await restoreBackup({ bytes: streamOf(tar), dataDir, masterKey });
  await using core = await coreOn(dataDir);
  const { projects } = await core.clients.projects.listProjects({}, asProject);
  assert.is(projects.length, 1);
});

test('a directory that is not empty is not changed', async () => {
  await using app = await boot();
  const tar = await taken(app);
  await using target = tempDirectory();
  writeFileSync(join(target.path, 'mine'), 'kept');
  const message = await refused(restoreBackup({ bytes: streamOf(tar), dataDir: target.path }));
  assert.match(message, /is not empty/);
  assert.equal(readdirSync(target.path), ['mine']);
});

test('a damaged file is left out and reported, and the rest is restored', async () => {
  await using app = await boot();
  const blobId = await app.upload('the bytes of a blob');
  writeFileSync(join(app.dir, 'blobs', blobId), 'THE bytes of a blob');
  await using target = tempDirectory();
  const dataDir = join(target.path, 'data');
  const { manifest } = await restoreBackup({ bytes: streamOf(await taken(app)), dataDir });
  assert.equal(manifest.missing, [blobId]);
  assert.equal(readdirSync(join(dataDir, 'blobs')), []);
});

test('a database that names paths as files is refused', async () => {
  await using target = tempDirectory();
  const from = join(target.path, 'from');
  await (await coreOn(from)).close();
  const db = new Sqlite(join(from, 'tabern.db'));
  db.prepare(`INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
      SELECT '../keys/master.key', id, 'BUNDLE', 1, 'x', 0 FROM projects LIMIT 1`).run();
  db.close();
  const parts = [];
  for await (const part of offlineBackup(from, { withMasterKey: true }))
    if (Buffer.isBuffer(part)) parts.push(part);
  const dataDir = join(target.path, 'data');
  const bytes = streamOf(Buffer.concat(parts));
  assert.match(await refused(restoreBackup({ bytes, dataDir })), /names a file that is no blob/);
  assert.not.ok(existsSync(dataDir));
});

test('a directory that cannot be created is an error', async () => {
  await using target = tempDirectory();
  const file = join(target.path, 'file');
  writeFileSync(file, 'kept');
  for (const dataDir of [file, join(file, 'below'), join(target.path, 'no', 'parent')]) {
    const message = await refused(restoreBackup({ bytes: streamOf(Buffer.alloc(0)), dataDir }));
    assert.match(message, /cannot restore into .* \(E\w+\): name another directory by --data/);
  }
});

test('a truncated, changed or foreign backup restores nothing', async () => {
  await using app = await boot();
  await app.upload('the bytes of a blob');
  const tar = await taken(app);
  const changed = (at: number): Buffer => {
    const copy = Buffer.from(tar);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy;
  };
  const database = tar.indexOf('SQLite format 3');
  const blob = tar.indexOf('the bytes of a blob');
  await using target = tempDirectory();
  const dataDir = join(target.path, 'data');
  for (const [what, bytes, says] of [
    ['cut', tar.subarray(0, tar.length / 2), /not a whole backup/],
    ['without its end', tar.subarray(0, -1_024), /not a whole backup/],
    ['with another database', changed(database + 5_000), /its database is not whole/],
    ['with another blob', changed(blob), /is not whole/],
    ['no tar', Buffer.from('hello'), /not a whole backup/],
    ['empty', Buffer.alloc(0), /not a whole backup/],
  ] as const) {
    const message = await refused(restoreBackup({ bytes: streamOf(bytes as Buffer), dataDir }));
    assert.match(message, says, what);
    assert.not.ok(existsSync(dataDir), what);
  }
});

test('one backup runs at a time, and an abandoned one leaves no file', async () => {
  await using app = await boot();
  const { clients, asOperator } = app;
  const first = clients.operators.createBackup({ withMasterKey: false }, asOperator);
  const steps = first[Symbol.asyncIterator]();
  await steps.next();
  const second = clients.operators.createBackup({ withMasterKey: false }, asOperator);
  const fault = await faultOf(buffer(Readable.from(second)));
  assert.is(fault.reason, 'RATE_LIMIT');
  await steps.return?.(undefined);
  assert.ok((await taken(app)).length > 0);
  assert.not.ok(readdirSync(app.dir).includes('backup'));
});

test('files removed during a backup are deleted after it', async () => {
  await using folder = tempDirectory();
  const files = await openBlobFiles(folder.path);
  const parts = (async function* () {
    yield Buffer.from('bytes');
  })();
  await files.write('a', parts, 10);
  const [one, other] = [files.hold(), files.hold()];
  await files.remove('a');
  await one[Symbol.asyncDispose]();
  assert.equal(readdirSync(folder.path), ['a']);
  await other[Symbol.asyncDispose]();
  assert.equal(readdirSync(folder.path), []);
});

test('a directory that no core uses is backed up offline', async () => {
  await using target = tempDirectory();
  const dataDir = join(target.path, 'data');
  const core = await coreOn(dataDir);
  const read = async () => {
    const parts = [];
    for await (const part of offlineBackup(dataDir, { withMasterKey: true })) parts.push(part);
    return Buffer.concat(parts.filter((part) => Buffer.isBuffer(part)));
  };
  assert.match(await refused(read()), /another tabern runs/);
  await core.close();
  const tar = await read();
  const copy = join(target.path, 'copy');
  await restoreBackup({ bytes: streamOf(tar), dataDir: copy });
  await using again = await coreOn(copy);
  assert.is((await again.clients.projects.listProjects({}, asProject)).projects.length, 1);
  mkdirSync(join(target.path, 'none'));
  const none = offlineBackup(join(target.path, 'none'), { withMasterKey: false }).next();
  assert.match(await refused(none), /is no data directory/);
});

test.run();
