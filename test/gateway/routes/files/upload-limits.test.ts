/** How much of uploads there may be: in bytes, of all parts together, and at once for one key. */
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { KEY } from '../../sessions/runner.ts';
import { archive, BUILDS_PATH, openKeeping, send, unended } from './uploads.ts';

const test = suite('gateway/routes/files/upload-limits');
const METADATA = JSON.stringify({ entrypoint: './index.ts' });

test('an archive above 25 MB is a 413, with a declared size or without', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  const told = await send(gateway.url, [['archive', archive(26 * 1024 * 1024)]]);
  assert.is(told.status, 413);
  const streamed = await fetch(gateway.url + BUILDS_PATH, {
    method: 'POST',
    headers: { 'x-svc-api-key': KEY, 'content-type': 'multipart/form-data; boundary=b' },
    body: new Blob([
      '--b\r\ncontent-disposition: form-data; name="archive"; filename="a"\r\n\r\n',
      new Uint8Array(26 * 1024 * 1024),
      '\r\n--b--\r\n',
    ]).stream(),
    duplex: 'half',
  } as RequestInit);
  assert.is(streamed.status, 413);
  assert.equal(await streamed.json(), {
    statusCode: 413,
    error: 'Payload Too Large',
    message: 'The body must not exceed 25 MiB.',
  });
  assert.equal(kept.cut, ['BODY_TOO_LARGE']);
  assert.is(kept.blobs.length, 0);
});

test('ignored parts count towards the size', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  const other = '--b\r\ncontent-disposition: form-data; name="other"; filename="a"\r\n\r\n';
  async function* endless() {
    yield Buffer.from(other);
    for (let megabytes = 0; megabytes < 200; megabytes += 1) yield new Uint8Array(1_000_000);
  }
  const answer = await fetch(gateway.url + BUILDS_PATH, {
    method: 'POST',
    headers: { 'x-svc-api-key': KEY, 'content-type': 'multipart/form-data; boundary=b' },
    body: ReadableStream.from(endless()),
    duplex: 'half',
  } as RequestInit);
  assert.is(answer.status, 413);
  assert.equal([kept.blobs.length, kept.builds.length], [0, 0]);
});

test('one key has 8 concurrent uploads, and slots again when they end', async () => {
  const { gateway, kept } = await openKeeping();
  await using _ = gateway;
  const { hostname, port } = new URL(gateway.url);
  const parts: [string, string | Blob][] = [
    ['metadata', METADATA],
    ['archive', archive(10)],
  ];
  const sockets = Array.from({ length: 8 }, () => connect(Number(port), hostname));
  for (const socket of sockets) socket.write(unended(hostname));
  const refused = await until(async () => {
    const answer = await fetch(gateway.url + BUILDS_PATH, uploadOf('none'));
    return answer.status === 429 && answer;
  });
  assert.is(refused.headers.get('retry-after'), '5');
  assert.is(refused.headers.get('x-should-retry'), 'true');
  assert.is(refused.headers.get('x-ratelimit-limit'), '8');
  assert.is(refused.headers.get('x-ratelimit-remaining'), '0');
  assert.is(((await refused.json()) as Error).message, 'Max concurrent uploads (8) reached.');
  for (const socket of sockets) socket.destroy();
  await until(() => kept.cut.length === 8);
  assert.is((await send(gateway.url, parts)).status, 202);
});

/** A form that is refused by its content, when it has a place at all. */
function uploadOf(body: string): RequestInit {
  const headers = { 'x-svc-api-key': KEY, 'content-type': 'multipart/form-data; boundary=b' };
  return { method: 'POST', headers, body };
}

test.run();
