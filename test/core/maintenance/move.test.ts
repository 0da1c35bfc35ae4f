/** The files of a data directory are moved to a real S3 server, as `tabern move` does. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openBucket } from '../../../core/files/s3/bucket.ts';
import type { S3Place } from '../../../core/files/s3/place.ts';
import { type Core, startCore } from '../../../core/main.ts';
import { type Moved, moveBlobs } from '../../../core/maintenance/move.ts';
import type { Env } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { startS3 } from '../../support/servers/s3.ts';
import { type Booted, blobParts, boot, configOn, KEY } from '../boot.ts';

const test = suite('core/maintenance/move');
const log = openLog({ role: 'core', level: 'silent' });
const server = await startS3();
const NO_ABORT = new AbortController().signal;

type Watched = { total: number; uploaded: number };

async function move(
  env: Env,
  { signal = NO_ABORT, onUpload = () => {} }: { signal?: AbortSignal; onUpload?: () => void } = {},
): Promise<Moved & Watched> {
  const watched = { total: 0, uploaded: 0 };
  const progress = {
    begun(bytes: number) {
      watched.total = bytes;
    },
    uploaded() {
      watched.uploaded += 1;
      onUpload();
    },
  };
  return { ...(await moveBlobs(env, { signal, progress })), ...watched };
}

const failing = (env: Env, options?: Parameters<typeof move>[1]) =>
  move(env, options).then(() => '', String);

/** A closed core's directory with blobs of these sizes, and a bucket for them. */
async function openScene(sizes: readonly number[]) {
  const app = await boot();
  const texts = new Map<string, Buffer>();
  for (const [n, size] of sizes.entries()) {
    const bytes = Buffer.alloc(size, `file ${n}`);
    const parts = blobParts({ kind: 'BUILD_ARCHIVE' }, bytes);
    const { blobId } = await app.clients.blobs.writeBlob(parts, app.asProject);
    texts.set(blobId, bytes);
  }
  await app.core.close();
  const place = await server.bucket();
  const env = { TABERN_DATA: app.dir, ...server.settings(place) };
  return { app, place, env, texts, ids: [...texts.keys()] };
}

async function read(core: Core, app: Booted, blobId: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const { chunk } of core.clients.blobs.readBlob({ blobId }, app.asProject)) {
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks);
}

async function countOf(place: S3Place): Promise<number> {
  using bucket = openBucket(place);
  return (await bucket.list('')).items.length - 1; // without the owner
}

test('all files are in the bucket, which the directory needs from then on', async () => {
  const { app, place, env, texts, ids } = await openScene([5, 0, 12 << 20]);
  await using _ = app;
  const moved = await move(env);
  assert.is(moved.files, 3);
  assert.is(moved.bytes, 5 + (12 << 20));
  assert.equal(moved.damaged, []);
  assert.equal(readdirSync(moved.kept).sort(), ids.toSorted());
  assert.is(existsSync(join(app.dir, 'blobs')), false);
  const refused = startCore(configOn(app.dir), log).then(() => '', String);
  assert.match(await refused, /TABERN_BLOBS is not set/);
  const settings = { ...server.settings(place), TABERN_API_KEY: KEY };
  await using core = await startCore(configOn(app.dir, settings), log, { now: app.clock.now });
  for (const [id, bytes] of texts) assert.ok((await read(core, app, id)).equals(bytes));
});

test('an interrupted move goes on with the rest, a complete one has nothing to do', async () => {
  const { app, place, env } = await openScene([1, 2, 3, 4, 5, 6, 7, 8]);
  await using _ = app;
  const interrupted = new AbortController();
  const onUpload = () => interrupted.abort();
  assert.match(await failing(env, { signal: interrupted.signal, onUpload }), /Abort/);
  const first = await countOf(place);
  assert.ok(first > 0 && first < 8, String(first));
  assert.is(existsSync(join(app.dir, 'bucket')), false);
  const second = await move(env);
  assert.is(second.uploaded, 8 - first);
  assert.is(await countOf(place), 8);
  const third = await move(env);
  assert.equal([third.uploaded, third.total, third.kept], [0, 0, second.kept]);
});

test('a damaged file and a lost one are named, and not stored', async () => {
  const { app, place, env, ids } = await openScene([5, 6, 7]);
  await using _ = app;
  const [first = ''] = ids;
  writeFileSync(join(app.dir, 'blobs', first), 'other');
  const { damaged } = await move(env);
  assert.equal(damaged, [first]);
  assert.is(await countOf(place), 2);
});

test('a directory in use or without data, and an unusable bucket, are refused', async () => {
  const { app, place, env } = await openScene([5]);
  await using _ = app;
  assert.match(await failing({ ...env, TABERN_DATA: '/nonexistent' }), /is no data directory/);
  assert.match(await failing({ TABERN_DATA: app.dir }), /name the bucket: --s3/);
  const wrong = { ...env, TABERN_BLOBS_SECRET_ACCESS_KEY: 'wrong' };
  assert.match(await failing(wrong), /TABERN_BLOBS_SECRET_ACCESS_KEY is not the secret/);
  const other = await openScene([1]);
  await using __ = other.app;
  await move(other.env);
  const foreign = { TABERN_DATA: app.dir, ...server.settings(other.place) };
  assert.match(await failing(foreign), /belongs to another installation/);
  const elsewhere = { TABERN_DATA: other.app.dir, ...server.settings(place) };
  assert.match(await failing(elsewhere), /are in s3:.*copy that bucket instead/);
  await using core = await startCore(configOn(app.dir), log, { now: app.clock.now });
  assert.ok(core);
  assert.match(await failing(env), /in use|another|runs/);
  assert.is(await countOf(other.place), 1);
});

test('stops', async () => {
  await server[Symbol.asyncDispose]();
});

test.run();
