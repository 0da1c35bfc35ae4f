/** Uploads past core, to a real S3 server: what is stored, what is refused, and who may. */
import { createHash } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openBucket } from '../../../core/files/s3/bucket.ts';
import type { S3Place } from '../../../core/files/s3/place.ts';
import { startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { openSemaphore } from '../../../proto/sharing/semaphore.ts';
import { type BlobClient, storeBlob } from '../../../proto/uploads/direct.ts';
import { PART_BYTES } from '../../../proto/uploads/parts.ts';
import { zipOf } from '../../support/clients/zip.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { startS3 } from '../../support/servers/s3.ts';
import { type Booted, boot, configOn, KEY } from '../boot.ts';

const test = suite('core/blobs/direct-uploads');
const log = openLog({ role: 'core', level: 'silent' });
const server = await startS3();
const ARCHIVE = { kind: 'BUILD_ARCHIVE' } as const;
const RETRY_MS = 120_000;
const MANIFEST = '{"name":"x","version":"1","manifest_version":3}';

async function onBucket(env: Record<string, string> = {}) {
  const place = await server.bucket();
  const app = await boot({ ...server.settings(place), ...env });
  return { app, place };
}

async function* bytesOf(...parts: Buffer[]): AsyncGenerator<Buffer> {
  yield* parts;
}

function store(app: Booted, bytes: AsyncIterable<Buffer>, call: CallOptions = app.asProject) {
  return storeBlob(app.clients.blobs, { header: ARCHIVE, bytes }, { ...call, retryMs: RETRY_MS });
}

async function bucketFault(app: Booted): Promise<string | undefined> {
  const { checks } = await app.clients.health.checkHealth({}, app.asGateway);
  return checks.find(({ name }) => name === 'bucket')?.fault;
}

async function keysOf(place: S3Place): Promise<string[]> {
  using bucket = openBucket(place);
  const names = (await bucket.list('')).items.map(({ key }) => key.slice(place.prefix.length));
  return names.filter((name) => name !== 'tabern-owner');
}

async function uploadsOf(place: S3Place): Promise<number> {
  using bucket = openBucket(place);
  return (await bucket.listUploads({ key: '', uploadId: '' })).items.length;
}

async function read(app: Booted, blobId: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const { chunk } of app.clients.blobs.readBlob({ blobId }, app.asProject)) {
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

test('a small blob is one request, a large one has parts; core reads no byte of them', async () => {
  const { app, place } = await onBucket();
  await using _ = app;
  const streamed: string[] = [];
  const blobs: BlobClient = {
    ...app.clients.blobs,
    writeBlob: () => Promise.reject(new Error('the bytes went through core')),
    async signUpload(request, options) {
      streamed.push(`${request.number}: ${request.size}`);
      return await app.clients.blobs.signUpload(request, options);
    },
  };
  const large = Buffer.alloc(2 * PART_BYTES + 3, 'large');
  for (const [bytes, requests] of [
    [Buffer.from('small'), ['0: 5']],
    [Buffer.alloc(0), ['0: 0']],
    [large, [`1: ${PART_BYTES}`, `2: ${PART_BYTES}`, '3: 3']],
  ] as const) {
    const wanted = { header: ARCHIVE, bytes: bytesOf(bytes) };
    const written = await storeBlob(blobs, wanted, { ...app.asProject, retryMs: 0 });
    assert.is(written.size, bytes.length);
    assert.is(written.sha256, createHash('sha256').update(bytes).digest('hex'));
    assert.ok((await read(app, written.blobId)).equals(bytes));
    assert.equal(streamed.splice(0), requests);
  }
  assert.is((await keysOf(place)).length, 3);
  assert.is(await uploadsOf(place), 0);
});

test('without a bucket the bytes go through core, which is asked once', async () => {
  await using app = await boot();
  let asked = 0;
  const blobs: BlobClient = {
    ...app.clients.blobs,
    beginUpload(request, options) {
      asked += 1;
      return app.clients.blobs.beginUpload(request, options);
    },
  };
  for (const text of ['one', 'two']) {
    const wanted = { header: ARCHIVE, bytes: bytesOf(Buffer.from(text)) };
    const { blobId } = await storeBlob(blobs, wanted, { ...app.asProject, retryMs: 0 });
    assert.is((await read(app, blobId)).toString(), text);
  }
  assert.is(asked, 1);
});

test('a stream that fails, and one that is too large, leave nothing in the bucket', async () => {
  const { app, place } = await onBucket();
  await using _ = app;
  async function* broken() {
    yield Buffer.alloc(PART_BYTES + 1);
    throw new Error('the client left');
  }
  assert.match(String(await store(app, broken()).catch(String)), /the client left/);
  const large = store(app, bytesOf(...Array.from({ length: 6 }, () => Buffer.alloc(PART_BYTES))));
  assert.is((await faultOf(large)).reason, 'BODY_TOO_LARGE');
  assert.equal(await keysOf(place), []);
  assert.is(await uploadsOf(place), 0);
});

test('the quota counts uploads in progress, and refuses before the bytes are sent', async () => {
  const { app, place } = await onBucket({ TABERN_UPLOAD_MIB: '6' });
  await using _ = app;
  const { blobs } = app.clients;
  const begin = async () => {
    const { upload } = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
    return must(upload, 'an upload');
  };
  const part = { number: 1, size: PART_BYTES, sha256: 'a'.repeat(64) };
  const first = await begin();
  await blobs.signUpload({ upload: first, ...part }, app.asProject);
  await blobs.signUpload({ upload: first, ...part }, app.asProject); // the same part again
  const second = await begin();
  const refused = blobs.signUpload({ upload: second, ...part }, app.asProject);
  assert.is((await faultOf(refused)).reason, 'QUOTA_EXCEEDED');
  await blobs.abortUpload({ upload: first }, app.asProject);
  await blobs.abortUpload({ upload: second }, app.asProject);
  await store(app, bytesOf(Buffer.alloc(PART_BYTES)));
  assert.is((await keysOf(place)).length, 1);
});

test('an upload is its caller’s: others, other texts and wrong parts are refused', async () => {
  const { app } = await onBucket();
  await using _ = app;
  const { blobs } = app.clients;
  const { upload } = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const part = { upload: must(upload, 'upload'), number: 0, size: 1, sha256: 'a'.repeat(64) };
  const sign = (over: object, call = app.asProject) =>
    faultOf(blobs.signUpload({ ...part, ...over }, call));
  for (const [over, call, message] of [
    [{}, app.asRunner, '`upload` must be one that BeginUpload returned.'],
    [{ upload: part.upload.slice(0, -2) }, app.asProject, '`upload` must be one'],
    [{ upload: '' }, app.asProject, '`upload` must be one'],
    [{ size: PART_BYTES + 1 }, app.asProject, '`size` must be a whole number from 0 to'],
    [{ size: -1 }, app.asProject, '`size` must be'],
    [{ number: 999 }, app.asProject, '`number` is too large.'],
    [{ sha256: 'A'.repeat(64) }, app.asProject, '`sha256` must be 64 hex digits.'],
  ] as const) {
    const fault = await sign(over, call);
    assert.ok(fault.message.startsWith(message), `${fault.message} | ${message}`);
  }
  app.clock.advance(1_800_001);
  assert.is((await sign({})).reason, 'URL_EXPIRED');
  const wrongKind = { header: { kind: 'RECORDING' } } as const;
  assert.is((await faultOf(blobs.beginUpload(wrongKind, app.asProject))).reason, 'INVALID_FIELD');
});

test('a commit without its bytes stores no row; a repeated one answers as the first', async () => {
  const { app } = await onBucket();
  await using _ = app;
  const { blobs } = app.clients;
  const begun = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const sha256 = createHash('sha256').update('hello').digest('hex');
  const commit = { upload: must(begun.upload, 'upload'), size: 5, sha256, tags: [] };
  const early = await faultOf(blobs.commitUpload(commit, app.asProject));
  assert.is(early.reason, 'BLOBS_UNAVAILABLE');
  const wanted = { upload: commit.upload, number: 0, size: 5, sha256 };
  const { url, headers } = await blobs.signUpload(wanted, app.asProject);
  await fetch(url, { method: 'PUT', headers, body: 'hello' });
  const stored = await blobs.commitUpload(commit, app.asProject);
  assert.equal(await blobs.commitUpload(commit, app.asProject), stored);
  assert.is((await read(app, stored.blobId)).toString(), 'hello');
});

test('a commit of another size is refused, and the object removed', async () => {
  const { app, place } = await onBucket();
  await using _ = app;
  const { blobs } = app.clients;
  const begun = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const upload = must(begun.upload, 'upload');
  const sha256 = createHash('sha256').update('hello').digest('hex');
  const wanted = { upload, number: 0, size: 5, sha256 };
  const { url, headers } = await blobs.signUpload(wanted, app.asProject);
  await fetch(url, { method: 'PUT', headers, body: 'hello' });
  const commit = blobs.commitUpload({ upload, size: 4, sha256, tags: [] }, app.asProject);
  assert.is((await faultOf(commit)).reason, 'INVALID_FIELD');
  assert.equal(await keysOf(place), []);
});

test('after the commit of an upload nothing of it is signed', async () => {
  const { app } = await onBucket();
  await using _ = app;
  const { blobs } = app.clients;
  const begun = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const upload = must(begun.upload, 'upload');
  const sha256 = createHash('sha256').update('hello').digest('hex');
  const part = { upload, number: 0, size: 5, sha256 };
  const { url, headers } = await blobs.signUpload(part, app.asProject);
  await fetch(url, { method: 'PUT', headers, body: 'hello' });
  await blobs.commitUpload({ upload, size: 5, sha256, tags: [] }, app.asProject);
  for (const number of [0, 1]) {
    const again = blobs.signUpload({ ...part, number, size: PART_BYTES }, app.asProject);
    assert.is((await faultOf(again)).facts['field'], 'upload');
  }
});

test('what is verified of an extension is what is read of it later', async () => {
  const { app, place } = await onBucket();
  await using _ = app;
  const { blobs, extensions } = app.clients;
  const header = { kind: 'EXTENSION' } as const;
  const zip = zipOf([{ name: 'manifest.json', text: MANIFEST }]);
  const other = createHash('sha256').update('other bytes, sent later').digest('hex');
  const begun = await blobs.beginUpload({ header }, app.asProject);
  const upload = must(begun.upload, 'upload');
  const sha256 = createHash('sha256').update(zip).digest('hex');
  const part = { upload, number: 0, size: zip.length, sha256 };
  const { url, headers } = await blobs.signUpload(part, app.asProject);
  await fetch(url, { method: 'PUT', headers, body: new Uint8Array(zip) });
  // the row has the hash of bytes that are not there
  const commit = { upload, size: zip.length, sha256: other, tags: [] };
  const { blobId } = await blobs.commitUpload(commit, app.asProject);
  const made = extensions.createExtension({ fileName: 'x.zip', blobId }, app.asProject);
  assert.is((await faultOf(made)).reason, 'DATA_CORRUPT');
  assert.equal(await keysOf(place), []);
});

test('an upload has one multipart upload, whatever texts its caller sends', async () => {
  const { app, place } = await onBucket();
  await using _ = app;
  const { blobs } = app.clients;
  const begun = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const upload = must(begun.upload, 'upload');
  const part = { upload, size: PART_BYTES, sha256: 'a'.repeat(64) };
  const sign = (number: number) => blobs.signUpload({ ...part, number }, app.asProject);
  const signed = [sign(1), sign(1), sign(2)];
  await Promise.all(signed);
  await sign(1);
  assert.is(await uploadsOf(place), 1);
});

test('an upload has the parts of its kind at most, and a tag for each', async () => {
  const { app } = await onBucket();
  await using _ = app;
  const { blobs } = app.clients;
  const begun = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const upload = must(begun.upload, 'upload');
  const sha256 = 'a'.repeat(64);
  const sixth = blobs.signUpload({ upload, number: 6, size: 1, sha256 }, app.asProject);
  assert.is((await faultOf(sixth)).facts['field'], 'number', '25 MiB have five parts');
  for (const tags of [Array.from({ length: 6 }, () => 'x'), ['x'.repeat(257)]]) {
    const refused = blobs.commitUpload({ upload, size: 1, sha256, tags }, app.asProject);
    assert.is((await faultOf(refused)).facts['field'], 'tags');
  }
});

test('an abort of an upload that is gone, or during an outage, is no internal error', async () => {
  const { app, place } = await onBucket();
  await using _ = app;
  const { blobs } = app.clients;
  const begun = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const part = { number: 1, size: PART_BYTES, sha256: 'a'.repeat(64) };
  const first = { upload: must(begun.upload, 'upload'), ...part };
  const { upload } = await blobs.signUpload(first, app.asProject);
  using bucket = openBucket(place);
  const [open] = (await bucket.listUploads({ key: '', uploadId: '' })).items;
  const { key, uploadId } = must(open, 'an upload');
  await bucket.abortUpload(key, uploadId);
  await blobs.abortUpload({ upload }, app.asProject);
  await blobs.abortUpload({ upload }, app.asProject);
  assert.equal(app.logged, []);
});

test('another core on the same data continues an upload that the first one began', async () => {
  const { app, place } = await onBucket();
  const { blobs } = app.clients;
  const { upload } = await blobs.beginUpload({ header: ARCHIVE }, app.asProject);
  const env = { ...server.settings(place), TABERN_API_KEY: KEY };
  await app.core.close();
  await using next = await startCore(configOn(app.dir, env), log, { now: app.clock.now });
  const sha256 = createHash('sha256').update('hello').digest('hex');
  const wanted = { upload: must(upload, 'upload'), number: 0, size: 5, sha256 };
  const later = next.clients.blobs;
  const { url, headers, upload: same } = await later.signUpload(wanted, app.asProject);
  await fetch(url, { method: 'PUT', headers, body: 'hello' });
  const commit = { upload: same, size: 5, sha256, tags: [] };
  assert.is((await later.commitUpload(commit, app.asProject)).size, 5);
});

test('a bucket that is stopped delays an upload, and loses nothing of it', async () => {
  const { app, place } = await onBucket();
  await using _ = app;
  const bytes = [Buffer.alloc(PART_BYTES, 'a'), Buffer.alloc(PART_BYTES, 'b'), Buffer.from('c')];
  const sent = Promise.withResolvers<void>();
  async function* slow() {
    for (const part of bytes) {
      yield part;
      if (part === bytes[1]) {
        server.pause();
        sent.resolve();
      }
    }
  }
  let isDone = false;
  const stored = store(app, slow()).finally(() => {
    isDone = true;
  });
  await sent.promise;
  await until(async () => (await bucketFault(app)) !== '');
  assert.is(isDone, false);
  server.resume();
  const { blobId } = await stored;
  assert.ok((await read(app, blobId)).equals(Buffer.concat(bytes)));
  assert.is((await keysOf(place)).length, 1);
});

test('a project that uploads much leaves requests for another one', async () => {
  const semaphore = openSemaphore({ max: 2, ofOwner: 1 });
  const { app } = await onBucket();
  await using _ = app;
  const order: string[] = [];
  const send = async (owner: string, text: string) => {
    const wanted = { header: ARCHIVE, bytes: bytesOf(Buffer.from(text)) };
    const how = { ...app.asProject, retryMs: RETRY_MS, slots: { semaphore, owner } };
    await storeBlob(app.clients.blobs, wanted, how);
    order.push(owner);
  };
  const many = Array.from({ length: 12 }, (_, n) => send('much', `${n}`));
  const one = send('little', 'one');
  await one;
  assert.ok(order.length < 12, order.join());
  await Promise.all(many);
  await until(() => order.length === 13);
});

test('stops', async () => {
  await server[Symbol.asyncDispose]();
});

test.run();
