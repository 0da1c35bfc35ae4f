import { readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { openBlobFiles } from '../../../core/files/blob-files.ts';
import { startBlobSweep } from '../../../core/files/orphan-sweep.ts';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { remoteClients } from '../../../proto/rpc/services.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { tempDirectory } from '../../support/temp.ts';
import { type Booted, blobParts, boot, configOn } from '../boot.ts';

const test = suite('core/blobs');
const silent = openLog({ role: 'core', level: 'silent' });

async function read(app: Booted, blobId: string, options: CallOptions): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const { chunk } of app.clients.blobs.readBlob({ blobId }, options)) {
    assert.ok(chunk.length <= 65_536);
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks).toString();
}

async function buildLease(app: Booted): Promise<string> {
  const wanted = { entrypoint: 'index.ts', archiveBlobId: await app.upload('archive') };
  await app.clients.functions.createBuild(wanted, app.asProject);
  return must((await app.lease('BUILD'))[0], 'build').leaseId;
}

test('a written blob is readable by its project and by a runner', async () => {
  await using app = await boot();
  const text = 'abc'.repeat(50_000);
  const { blobs } = app.clients;
  const written = await blobs.writeBlob(blobParts({ kind: 'BUILD_ARCHIVE' }, text), app.asProject);
  assert.is(written.size, text.length);
  assert.match(written.sha256, /^[0-9a-f]{64}$/);
  assert.is(await read(app, written.blobId, app.asProject), text);
  assert.is(await read(app, written.blobId, app.asRunner), text);
  for (const id of [newId(), '../tabern.db', '']) {
    const fault = await faultOf(read(app, id, app.asRunner));
    assert.is(fault.message, 'Blob not found.');
  }
  assert.is((await faultOf(read(app, written.blobId, app.asGateway))).reason, 'TOKEN_REQUIRED');
});

test('an archive of 25 MB is accepted, a larger one leaves no file', async () => {
  await using app = await boot();
  const { blobs } = app.clients;
  const write = (bytes: number) =>
    blobs.writeBlob(blobParts({ kind: 'BUILD_ARCHIVE' }, Buffer.alloc(bytes)), app.asProject);
  const max = 25 * 1024 * 1024; // as the CLI, the gateway and the runner count
  const { size } = await write(max);
  assert.is(size, max);
  assert.is((await faultOf(write(max + 1))).reason, 'BODY_TOO_LARGE');
  assert.is(readdirSync(join(app.dir, 'blobs')).length, 1);
});

test('projects write archives, runners write bundles under a live lease of a build', async () => {
  await using app = await boot();
  const { blobs } = app.clients;
  const refusal = async (
    header: Parameters<typeof blobParts>[0],
    options: CallOptions,
  ): Promise<string> => (await faultOf(blobs.writeBlob(blobParts(header, 'x'), options))).reason;
  const leaseId = await buildLease(app);
  assert.is(await refusal({ kind: 'BUNDLE' }, app.asProject), 'INVALID_FIELD');
  assert.is(await refusal({ kind: 'KIND_UNSPECIFIED' }, app.asProject), 'INVALID_FIELD');
  assert.is(await refusal({ kind: 'BUILD_ARCHIVE', leaseId }, app.asRunner), 'INVALID_FIELD');
  assert.is(await refusal({ kind: 'BUNDLE' }, app.asRunner), 'LEASE_LOST');
  assert.is(await refusal({ kind: 'BUNDLE', leaseId: newId() }, app.asRunner), 'LEASE_LOST');
  const bundle = await app.upload('bundle', leaseId);
  assert.is(await read(app, bundle, app.asProject), 'bundle', 'it is the project’s');
});

test('a stream without a header, or with two, is refused', async () => {
  await using app = await boot();
  const { blobs } = app.clients;
  async function* parts(kinds: ('header' | 'chunk')[]) {
    for (const kind of kinds) {
      yield kind === 'chunk'
        ? { part: { $case: 'chunk' as const, value: Buffer.from('x') } }
        : { part: { $case: 'header' as const, value: { kind: 'BUILD_ARCHIVE' as const } } };
    }
  }
  for (const kinds of [[], ['chunk'], ['header', 'chunk', 'header']] as const) {
    const call = blobs.writeBlob(parts([...kinds]), app.asProject);
    assert.is((await faultOf(call)).reason, 'INVALID_FIELD');
  }
  assert.equal(readdirSync(join(app.dir, 'blobs')), []);
});

test('an aborted upload over gRPC leaves no file', async () => {
  await using app = await boot();
  using channel = new Channel(app.core.address, credentials.createInsecure());
  const { blobs } = remoteClients(channel);
  const leaving = new AbortController();
  const folder = join(app.dir, 'blobs');
  async function* endless() {
    yield { part: { $case: 'header' as const, value: { kind: 'BUILD_ARCHIVE' as const } } };
    yield { part: { $case: 'chunk' as const, value: Buffer.alloc(1_000) } };
    await until(() => readdirSync(folder).length > 0);
    leaving.abort();
    await until(() => false, 1).catch(() => undefined);
  }
  const options = { ...app.asProject, signal: leaving.signal };
  assert.is((await faultOf(blobs.writeBlob(endless(), options))).reason, 'CANCELLED');
  await until(() => readdirSync(folder).length === 0);
});

test('the sweep removes only unreferenced blobs after an hour, row and file', async () => {
  await using app = await boot();
  await app.publish({ name: 'f' });
  const used = readdirSync(join(app.dir, 'blobs')).sort();
  assert.is(used.length, 2, 'archive and bundle');
  const refused = await app.upload('refused');
  app.clock.advance(3_600_001);
  const fresh = await app.upload('fresh');
  await app.core.close();
  await using again = await startCore(configOn(app.dir), silent, { now: app.clock.now });
  assert.equal(readdirSync(join(app.dir, 'blobs')).sort(), [...used, fresh].sort());
  const wanted = { entrypoint: 'index.ts', archiveBlobId: refused };
  const late = again.clients.functions.createBuild(wanted, app.asProject);
  assert.is((await faultOf(late)).message, 'Archive not found.');
});

test("a clock ahead of the machine's makes no file old, not even one being written", async () => {
  await using folder = tempDirectory();
  const names = ['young', 'old', 'slow.part'];
  const files = await openBlobFiles(folder.path);
  for (const name of names) writeFileSync(join(folder.path, name), '');
  for (const name of names.slice(1)) {
    utimesSync(join(folder.path, name), new Date(), new Date(Date.now() - 3_601_000));
  }
  const store = { knownBlobs: async () => [], removeUnusedBlobs: async () => [] };
  const open = async (isHeld: boolean) => {
    const parts = { store, files, log: silent, isHeld: () => isHeld };
    const clocks = { now: () => Date.now() + 86_400_000, wall: Date.now };
    await using _ = await startBlobSweep({ ...parts, ...clocks });
  };
  await open(true);
  assert.equal(readdirSync(folder.path).sort(), names.toSorted());
  await open(false);
  assert.equal(readdirSync(folder.path).sort(), ['slow.part', 'young']);
});

test('the sweep repeats while core runs', async () => {
  const folder = tempDirectory();
  const removed: string[] = [];
  const store = {
    knownBlobs: async () => [],
    removeUnusedBlobs: async () => batches.shift() ?? [],
  };
  const batches = [[], ['a']];
  const files = {
    ...(await openBlobFiles(folder.path)),
    remove: async (id: string) => void removed.push(id),
  };
  const times = { now: Date.now, wall: Date.now, isHeld: () => false, periodMs: 1 };
  await using sweep = await startBlobSweep({
    store,
    files,
    log: silent,
    ...times,
  });
  assert.ok(sweep);
  await until(() => removed.length === 1);
  await folder[Symbol.asyncDispose]();
});

test.run();
