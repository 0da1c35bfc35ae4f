/**
 * Servers that speak S3 wrongly: answers without an end, stalls, wrong lengths, ignored ranges, no
 * clock. Scripted over HTTP; what a right server does is in s3.test.ts and blobs.test.ts.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { sweepFiles } from '../../../core/files/orphan-sweep.ts';
import { openBucket } from '../../../core/files/s3/bucket.ts';
import { claimBucket } from '../../../core/files/s3/health.ts';
import { countLost } from '../../../core/files/s3/losses.ts';
import { openObjects } from '../../../core/files/s3/objects.ts';
import { openLog } from '../../../proto/common/log.ts';
import { NO_METRICS } from '../../../proto/common/metrics.ts';
import { must } from '../../../proto/common/must.ts';
import { errorOf, faultOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('core/files/hostile-s3');
const log = openLog({ role: 'core', level: 'silent' });
/** Ours: longer than any answer of a busy machine, and, where a test waits for it, short. */
const LONG_MS = 60_000;
const TIMES = { requestMs: LONG_MS, pingMs: LONG_MS, completeMs: LONG_MS, idleMs: LONG_MS };
const SHORT_MS = 300;
const SHORT = { requestMs: SHORT_MS, pingMs: SHORT_MS, completeMs: SHORT_MS, idleMs: SHORT_MS };
const OWNER = 'a'.repeat(64);
const TEXT = Buffer.from('the bytes of a blob');
const BLOB = {
  id: newId(),
  size: TEXT.length,
  sha256: createHash('sha256').update(TEXT).digest('hex'),
};

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function open(answer: Answer, times = TIMES) {
  await using opened = new AsyncDisposableStack();
  const dir = opened.use(tempDirectory());
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.defer(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  const keys = { accessKeyId: 'key', secretAccessKey: 'secret' };
  const endpoint = `http://127.0.0.1:${port}`;
  const place = {
    bucket: 'abc',
    prefix: '',
    endpoint,
    region: 'x',
    style: 'path',
    ...keys,
  } as const;
  const bucket = opened.use(openBucket(place, { times }));
  const spoolDir = join(dir.path, 'spool');
  const blobs = await openObjects({ bucket, spoolDir, log });
  const kept = opened.move();
  const copies = () => readdirSync(spoolDir);
  return { bucket, blobs, copies, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** Sends as fast as the client reads, until it disconnects. */
function endless(response: ServerResponse, status = 200): void {
  response.writeHead(status);
  const chunk = Buffer.alloc(1 << 20, 'x');
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on('drain', more);
  more();
}

/** Headers and a first part, and nothing after it. */
const stalling: Answer = (_, response) => {
  response.writeHead(200, { 'content-length': '1000' });
  response.write('<?xml');
};

async function bytesOf(parts: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const part of parts) bytes += part.length;
  return bytes;
}

test('an answer that stalls in its body ends the request', async () => {
  await using app = await open(stalling, SHORT);
  const { bucket, blobs } = app;
  for (const call of [
    () => bucket.ping(),
    () => bucket.list(''),
    () => bucket.put('x', TEXT),
    () => bucket.remove('x'),
    () => bucket.beginUpload('x'),
    () => bucket.completeUpload('x', 'id', ['tag']),
  ]) {
    assert.is(((await errorOf(call())) as Error).name, 'TimeoutError');
  }
  assert.match(await claimBucket(bucket, OWNER), /does not answer/);
  assert.is((await faultOf(bytesOf(blobs.read(BLOB)))).reason, 'BLOBS_UNAVAILABLE');
});

test('an answer that breaks off means that the server is away', async () => {
  await using app = await open((_, response) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('<', () => response.destroy());
  });
  async function* bytes() {
    yield TEXT;
  }
  const written = app.blobs.write(newId(), bytes(), TEXT.length);
  assert.is((await faultOf(written)).reason, 'BLOBS_UNAVAILABLE');
  assert.is((await faultOf(bytesOf(app.blobs.read(BLOB)))).reason, 'BLOBS_UNAVAILABLE');
});

test('an answer without an end is not read to its end', async () => {
  await using app = await open((request, response) => {
    if (/list-type/.test(request.url ?? '')) response.end('<ListBucketResult/>');
    else endless(response);
  });
  assert.match(await claimBucket(app.bucket, OWNER), /TABERN_BLOBS_ENDPOINT/);
  assert.match(String(await errorOf(app.bucket.put('x', TEXT))), /AnswerTooLong/);
});

test('an object without an end is DATA_CORRUPT, and leaves no copy', async () => {
  await using app = await open((_, response) => endless(response));
  const { blobs } = app;
  assert.is((await faultOf(bytesOf(blobs.read(BLOB)))).reason, 'DATA_CORRUPT');
  const copied = blobs.local(BLOB, new AbortController().signal);
  assert.is((await faultOf(copied)).reason, 'DATA_CORRUPT');
  assert.equal(app.copies(), []);
});

test('of an object without an end, only the head is read', async () => {
  await using app = await open((_, response) => endless(response, 206));
  assert.is((await app.blobs.head(BLOB.id, 100)).length, 100);
});

test('a head is given up when its caller does, before and in the answer', async () => {
  const begin: Answer = (_, response) => void response.writeHead(206).write('x');
  for (const answer of [() => undefined, begin]) {
    await using server = await open(answer);
    const head = server.blobs.head(BLOB.id, 9, AbortSignal.timeout(SHORT_MS));
    assert.is((await faultOf(head)).reason, 'BLOBS_UNAVAILABLE');
  }
});

test('a copy of an object with other bytes of that size is DATA_CORRUPT', async () => {
  const other = Buffer.from(TEXT).reverse();
  await using app = await open((_, response) => void response.end(other));
  const copied = app.blobs.local(BLOB, new AbortController().signal);
  assert.is((await faultOf(copied)).reason, 'DATA_CORRUPT');
  assert.equal(app.copies(), []);
});

test('a server that ignores the range yields no byte of another place', async () => {
  await using app = await open((_, response) => void response.end(TEXT));
  let bytes = 0;
  const reading = (async () => {
    for await (const part of app.blobs.readRange(BLOB, 4, 8)) bytes += part.length;
  })();
  assert.is((await faultOf(reading)).reason, 'BLOBS_UNAVAILABLE');
  assert.is(bytes, 0);
});

test('a 404 that is not of S3 means that the server is away, and no lost object', async () => {
  await using app = await open((_, response) => void response.writeHead(404).end('no such host'));
  assert.is((await faultOf(bytesOf(app.blobs.read(BLOB)))).reason, 'BLOBS_UNAVAILABLE');
});

test('a redirect is not followed', async () => {
  const seen: string[] = [];
  await using other = await open((request, response) => {
    seen.push(String(request.url));
    response.end();
  });
  const location = `${other.bucket.place.endpoint}/abc/x`;
  await using app = await open((_, response) => void response.writeHead(307, { location }).end());
  assert.match(String(await errorOf(app.bucket.put('x', TEXT))), /S3 answered 307/);
  assert.equal(seen, []);
});

/** A list of these objects, modified at that time. */
const listOf = (keys: string[], modified: string, isTruncated = false) => {
  const entries = keys.map(
    (key) =>
      `<Contents><Key>${key}</Key><Size>1</Size>` +
      `<LastModified>${modified}</LastModified></Contents>`,
  );
  const end = `<IsTruncated>${isTruncated}</IsTruncated>`;
  return `<ListBucketResult>${entries.join('')}${end}</ListBucketResult>`;
};

for (const [what, modified] of [
  ['has no clock', new Date().toISOString()],
  ['sends no times of objects', 'yesterday'],
] as const) {
  test(`nothing young is removed when the server ${what}`, async () => {
    const removed: string[] = [];
    await using app = await open((request, response) => {
      const { method, url = '' } = request;
      response.sendDate = false;
      if (method === 'DELETE') removed.push(url);
      const upload = `<Upload><Key>${BLOB.id}</Key><UploadId>u</UploadId>`;
      const uploads = `<R>${upload}<Initiated>${modified}</Initiated></Upload></R>`;
      response.end(/uploads/.test(url) ? uploads : listOf([BLOB.id], modified));
    });
    const store = { knownBlobs: async () => [] };
    assert.is(await sweepFiles({ store, files: app.blobs, wall: Date.now }), 0);
    assert.is(await app.blobs.sweepUploads(), 0);
    assert.equal(removed, []);
  });
}

test('without a clock of the server, what is old by this machine’s is removed', async () => {
  const removed: string[] = [];
  await using app = await open((request, response) => {
    response.sendDate = false;
    if (request.method === 'DELETE') removed.push(must(request.url, 'a path'));
    response.end(listOf([BLOB.id], new Date(Date.now() - 7_200_000).toISOString()));
  });
  const store = { knownBlobs: async () => [] };
  assert.is(await sweepFiles({ store, files: app.blobs, wall: Date.now }), 1);
  assert.equal(removed, [`/abc/${BLOB.id}`]);
});

test('a list that does not go on ends with an error', async () => {
  await using app = await open((_, response) => {
    response.end(listOf([BLOB.id], new Date().toISOString(), true));
  });
  const store = { knownBlobs: async () => [] };
  const sweep = sweepFiles({ store, files: app.blobs, wall: Date.now });
  assert.match(String(await errorOf(sweep)), /SamePageAgain/);
  const rows = [{ ...BLOB, id: 'f'.repeat(36) }];
  const listBlobs = async ({ after }: { after: string }) => (after === '' ? rows : []);
  const lost = { listBlobs, getBlob: async () => undefined } as never;
  const options = { store: lost, bucket: app.bucket, log, metrics: NO_METRICS };
  const compared = countLost(options, new AbortController().signal);
  assert.match(String(await errorOf(compared)), /SamePageAgain/);
});

test.run();
