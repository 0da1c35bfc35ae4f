/** Uploads and downloads of contexts through signed URLs, on a whole core: proto/spec/rest.md 6. */
import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealedText } from '../../../support/clients/contexts.ts';
import { until } from '../../../support/poll.ts';
import { type Created, openUploads, put } from './contexts.ts';

const test = suite('gateway/routes/files/context-upload');
const HOUR_MS = 3_600_000;

test('an upload replaces the content, and a download returns the same bytes', async () => {
  await using app = await openUploads();
  const { id, publicKey, uploadUrl } = app.context;
  assert.ok(uploadUrl.startsWith(`${app.gateway.url}/v1/contexts/${id}/content?`), uploadUrl);
  assert.is(await app.download(id), 404);
  for (const text of ['one', 'two', 'x'.repeat(3_000_000)]) {
    const bytes = await sealedText(publicKey, text);
    assert.equal(await put(uploadUrl, bytes), { status: 200, json: { id } });
    assert.ok(bytes.equals((await app.download(id)) as Buffer));
    assert.is(app.files().length, 1);
  }
  const { json } = await app.call<Created>('PUT', `/v1/contexts/${id}`);
  assert.is((await put(json.uploadUrl, await sealedText(publicKey, 'three'))).status, 200);
});

test('a gateway with a remote core uploads, downloads and refuses alike', async () => {
  await using app = await openUploads({}, true);
  const { id, publicKey, uploadUrl } = app.context;
  const bytes = await sealedText(publicKey, 'x'.repeat(3_000_000));
  assert.equal(await put(uploadUrl, bytes), { status: 200, json: { id } });
  assert.is((await put(uploadUrl, randomBytes(100_000))).status, 422);
  assert.is((await put(`${uploadUrl}x`, bytes)).status, 403);
  assert.is((await fetch(`${uploadUrl}x`)).status, 403);
  assert.ok(bytes.equals((await app.download(id)) as Buffer));
  assert.is(app.files().length, 1);
});

test('a download may not be cached, and has its type and name', async () => {
  await using app = await openUploads();
  const { id, publicKey, uploadUrl } = app.context;
  await put(uploadUrl, await sealedText(publicKey, 'one'));
  const { json } = await app.call<{ downloadUrl: string }>('GET', `/v1/contexts/${id}/download`);
  const { headers, status } = await fetch(json.downloadUrl);
  assert.is(status, 200);
  assert.is(headers.get('cache-control'), 'private, no-store');
  assert.is(headers.get('content-type'), 'application/octet-stream');
  assert.is(headers.get('content-disposition'), `attachment; filename="${id}.tbcx"`);
  app.clock.advance(HOUR_MS / 6);
  assert.is((await fetch(json.downloadUrl)).status, 410);
});

test('revoking an API key ends its own links only', async () => {
  await using app = await openUploads();
  const { id, publicKey, uploadUrl } = app.context;
  const bytes = await sealedText(publicKey, 'one');
  const other = await app.otherKey();
  const path = `/v1/contexts/${id}`;
  const theirs = (await app.call<Created>('PUT', path, other.key)).json.uploadUrl;
  assert.is((await put(theirs, bytes)).status, 200);
  type Download = { downloadUrl: string };
  const { json } = await app.call<Download>('GET', `${path}/download`, other.key);
  assert.is((await fetch(json.downloadUrl)).status, 200);
  await other.revoke();
  const late = await put(theirs, await sealedText(publicKey, 'two'));
  assert.equal([late.status, late.json['message']], [410, 'The URL has expired. Ask for another.']);
  assert.is((await fetch(json.downloadUrl)).status, 410);
  assert.ok(bytes.equals((await app.download(id)) as Buffer), 'nothing was replaced');
  assert.is((await put(uploadUrl, bytes)).status, 200);
});

test('links show TABERN_PUBLIC_URL when it is set', async () => {
  await using app = await openUploads({ TABERN_PUBLIC_URL: 'https://tabern.example/base/' });
  assert.match(app.context.uploadUrl, /^https:\/\/tabern\.example\/base\/v1\/contexts\//);
});

test('a URL in which any character differs is a 403', async () => {
  await using app = await openUploads();
  const { uploadUrl, publicKey } = app.context;
  const bytes = await sealedText(publicKey, 'one');
  const base = app.gateway.url.length;
  const from = base + '/v1/contexts/'.length;
  const wrong: number[] = [];
  for (let at = from; at < uploadUrl.length; at += 1) {
    const is = uploadUrl[at];
    if (is === '/' || uploadUrl.slice(at).startsWith('content?') || is === '?') continue;
    const other = is === 'a' ? 'b' : is === 'A' ? 'B' : is === '1' ? '2' : is === 'f' ? 'e' : '1';
    if (uploadUrl.indexOf('/content') <= at && at <= uploadUrl.indexOf('?')) continue;
    const { status } = await put(uploadUrl.slice(0, at) + other + uploadUrl.slice(at + 1), bytes);
    if (status !== 403) wrong.push(at);
  }
  assert.equal(wrong, []);
  assert.equal(app.files(), []);
});

test('other spellings, objects and methods are a 403, an expired URL is a 410', async () => {
  await using app = await openUploads();
  const { uploadUrl, publicKey } = app.context;
  const bytes = await sealedText(publicKey, 'one');
  const [path = '', query = ''] = uploadUrl.split('?');
  const [expires, project, signature] = query.split('&');
  const other = await app.create();
  const variants = {
    order: `${path}?${project}&${expires}&${signature}`,
    added: `${uploadUrl}&a=b`,
    twice: `${uploadUrl}&${signature}`,
    empty: `${uploadUrl}&`,
    encoded: uploadUrl.replace('signature=', 'signatur%65='),
    case: `${path.replace(app.context.id, app.context.id.toUpperCase())}?${query}`,
    later: uploadUrl.replace(/expires=(\d+)/, (_, at) => `expires=${Number(at) + 300}`),
    padded: uploadUrl.replace('expires=', 'expires=0'),
    unsigned: `${path}?${expires}&${project}`,
    bare: path,
    object: `${other.uploadUrl.split('?')[0]}?${query}`,
  };
  for (const [what, url] of Object.entries(variants)) {
    const { status, json } = await put(url, bytes);
    assert.equal([status, json['message']], [403, 'Invalid signature.'], what);
  }
  assert.is((await fetch(uploadUrl)).status, 403, 'a URL to write does not read');
  await put(uploadUrl, bytes);
  const { json } = await app.call<{ downloadUrl: string }>(
    'GET',
    `/v1/contexts/${app.context.id}/download`,
  );
  assert.is((await put(json.downloadUrl, bytes)).status, 403, 'a URL to read does not write');
  assert.is((await fetch(json.downloadUrl, { method: 'HEAD' })).status, 200);
  assert.is((await put(uploadUrl, bytes, 'POST')).status, 401, 'no other method is there');

  app.clock.advance(HOUR_MS - 1_000 - 1_000);
  assert.is((await put(uploadUrl, bytes)).status, 200, 'good to the end');
  app.clock.advance(2_000);
  assert.equal(
    (await put(uploadUrl, bytes)).json['message'],
    'The URL has expired. Ask for another.',
  );
  assert.is((await put(uploadUrl, bytes)).status, 410);
  assert.is((await put(variants.later, bytes)).status, 403, 'expiry is under the signature');
});

test('the URL of a deleted context is a 404', async () => {
  await using app = await openUploads();
  const { id, uploadUrl, publicKey } = app.context;
  await app.call('DELETE', `/v1/contexts/${id}`);
  const { status, json } = await put(uploadUrl, await sealedText(publicKey, 'one'));
  assert.equal([status, json['message']], [404, 'Context not found.']);
  assert.equal(app.files(), []);
});

test('an upload above 512 MiB is a 413, declared or not, and leaves nothing', async () => {
  await using app = await openUploads();
  const url = new URL(app.context.uploadUrl);
  const headers = { 'content-length': String((512 << 20) + 1) };
  const announced = await new Promise((resolve, reject) => {
    const sent = request(url, { method: 'PUT', headers }, (answer) => {
      resolve(answer.statusCode);
      sent.destroy();
    });
    sent.on('error', reject);
    sent.flushHeaders();
  });
  assert.is(announced, 413);

  const chunk = Buffer.alloc(1 << 20);
  let left = 513;
  const body = new ReadableStream({
    pull(out) {
      left -= 1;
      if (left < 0) out.close();
      else out.enqueue(chunk);
    },
  });
  assert.is((await put(app.context.uploadUrl, body)).status, 413);
  assert.equal(app.files(), []);
});

for (const isRemote of [false, true]) {
  const where = isRemote ? ' over gRPC' : '';
  test(`an upload that is cut off${where} leaves no file, and keeps the content`, async () => {
    await using app = await openUploads({}, isRemote);
    const { id, publicKey, uploadUrl } = app.context;
    const good = await sealedText(publicKey, 'good');
    await put(uploadUrl, good);
    const leaving = new AbortController();
    const body = new ReadableStream({ start: (out) => out.enqueue(randomBytes(100_000)) });
    const init = { method: 'PUT', body, duplex: 'half', signal: leaving.signal } as RequestInit;
    const left = fetch(uploadUrl, init).catch((error: Error) => error.name);
    await until(() => app.files().length === 2);
    leaving.abort();
    assert.is(await left, 'AbortError');
    await until(() => app.files().length === 1);
    assert.ok(good.equals((await app.download(id)) as Buffer));
  });
}

for (const isRemote of [false, true]) {
  const where = isRemote ? ' over gRPC' : '';
  test(`a project uploads to one of its contexts at a time${where}`, async () => {
    await using app = await openUploads({}, isRemote);
    const { publicKey, uploadUrl } = app.context;
    const other = await app.create();
    const leaving = new AbortController();
    const body = new ReadableStream({ start: (out) => out.enqueue(randomBytes(100_000)) });
    const init = { method: 'PUT', body, duplex: 'half', signal: leaving.signal } as RequestInit;
    const first = fetch(uploadUrl, init).catch((error: Error) => error.name);
    await until(() => app.files().length === 1);

    const bytes = await sealedText(other.publicKey, 'x'.repeat(1_000_000));
    const refused = await fetch(other.uploadUrl, { method: 'PUT', body: new Uint8Array(bytes) });
    assert.is(refused.status, 429);
    assert.is(refused.headers.get('retry-after'), '5');
    assert.is(refused.headers.get('x-should-retry'), 'true');
    const { message } = (await refused.json()) as Error;
    assert.is(message, 'Max concurrent uploads to contexts (1) reached.');
    assert.is(app.files().length, 1);

    leaving.abort();
    assert.is(await first, 'AbortError');
    await until(() => app.files().length === 0);
    await until(async () => (await put(other.uploadUrl, bytes)).status === 200);
    // one that was refused for its bytes is over too
    assert.is((await put(uploadUrl, Buffer.from('no archive'))).status, 422);
    assert.is((await put(uploadUrl, await sealedText(publicKey, 'y'))).status, 200);
  });
}

test('a JSON body keeps its own limit beside it', async () => {
  await using app = await openUploads();
  const large = Buffer.alloc(2 << 20);
  const url = `${app.gateway.url}/v1/contexts/${app.context.id}`;
  assert.is((await put(url, large)).status, 413);
});

test.run();
