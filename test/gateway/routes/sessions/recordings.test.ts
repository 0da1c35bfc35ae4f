/** Recordings over REST: downloads, playlists, and the bytes of signed URLs in ranges. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { playlistOf, rangeOf } from '../../../../gateway/routes/sessions/recordings.ts';
import { must } from '../../../../proto/common/must.ts';
import { blobParts, KEY } from '../../../core/boot.ts';
import { type Answer, ask } from '../../sessions/runner.ts';
import { openUploads } from '../files/contexts.ts';

const test = suite('gateway/routes/sessions/recordings');

type Download = { pageId: string; status: string; downloadUrl?: string; completedAt?: string };
type Error = { statusCode: number; error: string; message: string };

/** A gateway, and an ended session with one page of two segments. */
async function openRecorded(isRemote = false) {
  const app = await openUploads({}, isRemote);
  const { blobs, runners } = app.clients;
  const { sessionId } = await app.invoke(await app.publish({ name: newId() }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  for (const [number, bytes] of ['start', 'one', 'two'].entries()) {
    const parts = blobParts({ kind: 'RECORDING', leaseId }, bytes);
    const { blobId } = await blobs.writeBlob(parts, app.asRunner);
    const startMs = Math.max(number - 1, 0) * 1_500;
    const part = { leaseId, pageId: 0, number, blobId, startMs, endMs: number * 1_500 };
    const said = { ...part, url: 'https://a.test/', complete: number === 2 };
    await runners.addRecording(said, app.asRunner);
  }
  const end = { leaseId, outcome: undefined, sessionStartMs: app.clock.now(), steps: [] };
  await runners.completeInvocation(end, app.asRunner);
  const path = `/v1/sessions/${sessionId}`;
  return {
    ...app,
    sessionId,
    path,
    ask: (method: string, at: string, key: string | string[] = KEY): Promise<Answer> =>
      ask(app.gateway.url, method, path + at, { headers: { 'x-svc-api-key': key } }),
    downloads: (method: string, key = KEY) =>
      app.call<{ downloads: Download[] } & Error>(method, `${path}/recording/downloads`, key),
  };
}

for (const isRemote of [false, true]) {
  const where = isRemote ? 'over gRPC' : 'in one process';

  test(`${where}: a requested download has a link that needs no key`, async () => {
    await using app = await openRecorded(isRemote);
    const asked = await app.downloads('POST');
    assert.equal([asked.status, asked.json.downloads[0]?.status], [202, 'PENDING']);
    const { status, json } = await app.downloads('GET');
    const [download] = json.downloads;
    assert.is(status, 200);
    assert.is(download?.status, 'COMPLETED');
    assert.is(download?.completedAt, new Date(app.clock.now()).toISOString());
    const url = must(download?.downloadUrl, 'a link');
    assert.ok(url.startsWith(`${app.gateway.url}/v1/sessions/${app.sessionId}/`), url);
    const answer = await fetch(url);
    assert.is(answer.status, 200);
    const { headers } = answer;
    assert.is(headers.get('content-type'), 'video/mp4');
    assert.is(headers.get('content-disposition'), `attachment; filename="${app.sessionId}-0.mp4"`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.is(headers.get('content-length'), String(bytes.length));
    assert.ok(bytes.subarray(0, 5).equals(Buffer.from('start')));
    assert.ok(bytes.subarray(-6).equals(Buffer.from('onetwo')));
    const range = await fetch(url, { headers: { range: 'bytes=-6' } });
    assert.equal([range.status, await range.text()], [206, 'onetwo']);
    const { length } = bytes;
    assert.is(range.headers.get('content-range'), `bytes ${length - 6}-${length - 1}/${length}`);
    const past = await fetch(url, { headers: { range: `bytes=${length}-` } });
    assert.equal([past.status, past.headers.get('content-range')], [416, `bytes */${length}`]);
    const head = await fetch(url, { method: 'HEAD' });
    assert.equal([head.status, head.headers.get('content-length')], [200, String(length)]);
  });
}

test('a playlist needs a key, its parts do not', async () => {
  await using app = await openRecorded();
  const playlist = await app.ask('GET', '/replays/0');
  assert.is(playlist.status, 200);
  assert.is(playlist.headers['content-type'], 'application/vnd.apple.mpegurl');
  const lines = playlist.text.split('\n');
  assert.equal(
    lines.filter((line) => line.startsWith('#EXTINF')),
    ['#EXTINF:1.500,', '#EXTINF:1.500,'],
  );
  assert.ok(lines.includes('#EXT-X-ENDLIST'));
  const start = must(/URI="([^"]+)"/.exec(playlist.text)?.[1], 'the start');
  assert.is(await (await fetch(start)).text(), 'start');
  const segments = lines.filter((line) => line.startsWith('http'));
  const first = await fetch(must(segments[0], 'a segment'));
  assert.equal(
    [first.headers.get('content-type'), await first.text()],
    ['video/iso.segment', 'one'],
  );
  const bare = await app.ask('GET', '/replays/0', []);
  assert.is(bare.status, 401);
  const unknown = await app.ask('GET', '/replays/7');
  assert.equal([unknown.status, (unknown.json as Error).message], [404, 'Replay not found.']);
  const wrong = await app.ask('GET', '/replays/x');
  assert.is(wrong.status, 400);
});

test('a changed or expired link is refused', async () => {
  await using app = await openRecorded();
  await app.downloads('POST');
  const { json } = await app.downloads('GET');
  const url = must(json.downloads[0]?.downloadUrl, 'a link');
  const refused = await fetch(url.replace('0.mp4', '1.mp4'));
  assert.is(refused.status, 403);
  assert.is(((await refused.json()) as Error).message, 'Invalid signature.');
  const unsigned = await fetch(url.split('?', 1)[0] ?? '');
  assert.is(unsigned.status, 403);
  app.clock.advance(6 * 3_600_000);
  assert.is((await fetch(url)).status, 410);
});

test('revoking an API key ends its own links only', async () => {
  await using app = await openRecorded();
  await app.downloads('POST');
  const other = await app.otherKey();
  const linksOf = async (key: string): Promise<string[]> => {
    const { json } = await app.downloads('GET', key);
    const { text } = await app.ask('GET', '/replays/0', key);
    const start = must(/URI="([^"]+)"/.exec(text)?.[1], 'the start');
    const segments = text.split('\n').filter((line) => line.startsWith('http'));
    return [must(json.downloads[0]?.downloadUrl, 'a link'), start, ...segments];
  };
  const statuses = (urls: string[]) =>
    Promise.all(urls.map(async (url) => (await fetch(url)).status));
  const [own, theirs] = await Promise.all([linksOf(KEY), linksOf(other.key)]);
  assert.equal(await statuses([...own, ...theirs]), Array(8).fill(200));
  await other.revoke();
  assert.equal(await statuses(theirs), Array(4).fill(410), 'at once: no clock has moved');
  assert.equal(await statuses(own), Array(4).fill(200));
  const [file = ''] = theirs;
  const bare = file.replace(/&key=\w+/, '');
  assert.is.not(bare, file);
  assert.equal(await statuses([bare]), [403]);
  const refused = (await (await fetch(file)).json()) as Error;
  assert.is(refused.message, 'The URL has expired. Ask for another.');
});

test('too many requests are refused with a retry-after', async () => {
  await using app = await openRecorded();
  for (let count = 0; count < 5; count += 1) assert.is((await app.downloads('POST')).status, 202);
  const { status, headers, json } = await app.ask('POST', '/recording/downloads');
  assert.is(status, 429);
  assert.match((json as Error).message, 'Too many recording requests: 5 in 60 s.');
  assert.equal(
    ['retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].map(
      (name) => headers[name],
    ),
    ['60', '5', '0', '60'],
  );
});

test('the deprecated recording is an empty list', async () => {
  await using app = await openRecorded();
  const answer = await app.ask('GET', '/recording');
  assert.equal([answer.status, answer.json], [200, []]);
});

test('a single range of bytes is supported, otherwise the whole file is sent', () => {
  const cases: [string, ReturnType<typeof rangeOf>][] = [
    ['', undefined],
    ['bytes=0-', { from: 0, length: 10 }],
    ['bytes=2-3', { from: 2, length: 2 }],
    ['bytes=8-99', { from: 8, length: 2 }],
    ['bytes=-3', { from: 7, length: 3 }],
    ['bytes=-99', { from: 0, length: 10 }],
    ['bytes=-0', 'none'],
    ['bytes=10-', 'none'],
    ['bytes=3-2', undefined],
    ['bytes=-', undefined],
    ['bytes=0-1,4-5', undefined],
    ['items=0-1', undefined],
  ];
  for (const [header, expected] of cases) assert.equal(rangeOf(header, 10), expected, header);
});

test('the playlist of a running recording has no end', () => {
  const segments = [{ url: '/one', duration: 31.2 }];
  const text = playlistOf({ initUrl: '/start', segments, live: true }, 'http://a');
  assert.not.match(text, 'ENDLIST');
  assert.match(text, '#EXT-X-PLAYLIST-TYPE:EVENT\n');
  assert.match(text, '#EXT-X-TARGETDURATION:32\n');
  assert.match(text, '#EXT-X-MAP:URI="http://a/start"\n#EXTINF:31.200,\nhttp://a/one\n');
});

test.run();
