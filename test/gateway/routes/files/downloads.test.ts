/** Downloads over HTTP: one by its Accept, all of a session as a zip. proto/spec/sessions.md 9. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openPromise } from 'yauzl';
import { must } from '../../../../proto/common/must.ts';
import { until } from '../../../support/poll.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { ask, KEY, openGateway } from '../../sessions/runner.ts';
import { AT, downloadsOf, SESSION, type Stored } from './files.ts';

const test = suite('gateway/routes/files/downloads');
const DOWNLOADS = `/v1/sessions/${SESSION}/downloads`;

const file = (id: string, filename: string, text: string | Buffer): Stored => {
  return { id, filename, bytes: Buffer.from(text) };
};

/** Status, headers and bytes, as a client gets them. */
async function get(url: string, path: string, accept?: string) {
  const headers = { 'x-svc-api-key': KEY, ...(accept === undefined ? {} : { accept }) };
  const answer = await fetch(url + path, { headers });
  return {
    status: answer.status,
    headers: answer.headers,
    bytes: Buffer.from(await answer.arrayBuffer()),
  };
}

async function entriesOf(zip: Buffer): Promise<[string, string][]> {
  await using dir = tempDirectory();
  const path = join(dir.path, 'zip');
  writeFileSync(path, zip);
  const found: [string, string][] = [];
  const opened = await openPromise(path, { autoClose: false });
  for await (const entry of opened.eachEntry()) {
    const bytes = await buffer(await opened.openReadStreamPromise(entry));
    found.push([entry.fileName, createHash('sha256').update(bytes).digest('hex')]);
  }
  opened.close();
  return found;
}

const hash = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');

test('Accept selects the metadata of a download or its bytes', async () => {
  await using gateway = await openGateway(downloadsOf([file('d', 'a "b" 漢.txt', 'hello')]));
  for (const accept of [undefined, '*/*', 'application/json', 'text/html']) {
    const { status, headers, bytes } = await get(gateway.url, '/v1/downloads/d', accept);
    assert.is(status, 200);
    assert.match(headers.get('content-type') ?? '', 'application/json');
    assert.equal(JSON.parse(bytes.toString()), {
      id: 'd',
      sessionId: SESSION,
      filename: 'a "b" 漢.txt',
      mimeType: 'text/plain',
      size: 5,
      checksum: 'c'.repeat(64),
      createdAt: AT.toISOString(),
    });
  }
  const { status, headers, bytes } = await get(
    gateway.url,
    '/v1/downloads/d',
    'application/octet-stream, */*;q=0.1',
  );
  assert.is(status, 200);
  assert.is(bytes.toString(), 'hello');
  assert.is(headers.get('content-type'), 'application/octet-stream');
  assert.is(headers.get('content-length'), '5');
  assert.is(
    headers.get('content-disposition'),
    `attachment; filename="a \\"b\\" ?.txt"; filename*=UTF-8''a%20%22b%22%20%E6%BC%A2.txt`,
  );
  const missing = await get(gateway.url, '/v1/downloads/x', 'application/octet-stream');
  assert.is(missing.status, 404);
});

test('Accept selects the zip of a session or a page of its list', async () => {
  const files = ['a', 'b', 'c'].map((id) => file(id, `${id}.txt`, id));
  await using gateway = await openGateway(downloadsOf(files));
  const axios = 'application/json, text/plain, */*';
  for (const accept of [undefined, '*/*', axios, 'application/zip', 'text/html']) {
    const { headers } = await get(gateway.url, DOWNLOADS, accept);
    assert.is(headers.get('content-type'), 'application/zip', accept);
  }
  const list = async (query: string, accept = 'application/json') => {
    const { status, bytes } = await get(gateway.url, DOWNLOADS + query, accept);
    return { status, json: JSON.parse(bytes.toString()) };
  };
  const whole = await list('');
  assert.is(whole.status, 200);
  assert.equal(
    whole.json.downloads.map(({ id }: { id: string }) => id),
    ['c', 'b', 'a'],
  );
  const { downloads, ...page } = (await list('?limit=1&offset=1')).json;
  assert.equal(page, { total: 3, limit: 1, offset: 1 });
  assert.equal([downloads.length, downloads[0].id], [1, 'b']);
  const wrong = await list('?limit=x');
  assert.equal([wrong.status, wrong.json.message], [400, '`limit` must be a whole number.']);
  assert.is((await list('?sessionId=x')).status, 400, 'the path names the session');
  const unknown = await get(gateway.url, '/v1/sessions/x/downloads', 'application/json');
  assert.is(unknown.status, 404);
});

test('a session without downloads is a zip of 22 bytes', async () => {
  await using gateway = await openGateway(downloadsOf([]));
  const { status, headers, bytes } = await get(gateway.url, DOWNLOADS, 'application/zip');
  assert.is(status, 200);
  assert.is(headers.get('content-type'), 'application/zip');
  assert.is(headers.get('content-length'), '22');
  assert.is(bytes.toString('hex'), `504b0506${'00'.repeat(18)}`);
  const disposition = `attachment; filename="${SESSION}.zip"`;
  assert.is(headers.get('content-disposition'), disposition);
  assert.equal(await entriesOf(bytes), []);
});

test('the zip has every file once, with the time before its extension', async () => {
  const large = Buffer.alloc(3_000_000, 'large');
  const files = [file('1', 'a.txt', 'one'), file('2', 'a.txt', 'two'), file('3', 'tar.gz', large)];
  const many = Array.from({ length: 150 }, (_, n) => file(`m${n}`, `m${n}`, `text ${n}`));
  await using gateway = await openGateway(
    downloadsOf([...files, file('4', 'empty', ''), file('5', 'C:x.txt', 'drive'), ...many]),
  );
  const { headers, bytes } = await get(gateway.url, DOWNLOADS);
  assert.is(headers.get('content-length'), String(bytes.length));
  const found = await entriesOf(bytes);
  const ms = AT.getTime();
  assert.equal(found.slice(0, 5), [
    [`a-${ms}.txt`, hash('one')],
    [`a-${ms + 1}.txt`, hash('two')],
    [`tar-${ms}.gz`, hash(large)],
    [`empty-${ms}`, hash('')],
    [`C_x-${ms}.txt`, hash('drive')],
  ]);
  assert.is(found.length, 155);
  assert.equal(found.at(-1), [`m149-${ms}`, hash('text 149')]);
});

test('a zip with an unreadable file is truncated, and the gateway continues', async () => {
  const handlers = downloadsOf([file('1', 'a', 'text')]);
  await using gateway = await openGateway({
    ...handlers,
    blobs: {
      async *readBlob() {
        yield { chunk: Buffer.from('te') };
        throw new Error('the disk is gone');
      },
    },
  });
  const failed = await get(gateway.url, DOWNLOADS).then(
    () => false,
    () => true,
  );
  assert.is(failed, true);
  assert.is((await ask(gateway.url, 'GET', '/healthz')).status, 200);
});

test('a zip that is not read to its end leaves no file open', async () => {
  const own = downloadsOf([
    file('one', 'a.bin', Buffer.alloc(8 << 20)),
    file('two', 'b.bin', 'second'),
  ]);
  const counts = { begun: 0, ended: 0 };
  await using gateway = await openGateway({
    ...own,
    blobs: {
      async *readBlob(wanted) {
        counts.begun += 1;
        try {
          yield* own.blobs.readBlob(wanted);
        } finally {
          counts.ended += 1;
        }
      },
    },
  });
  assert.is((await ask(gateway.url, 'HEAD', DOWNLOADS)).status, 200);
  await until(() => counts.begun === counts.ended);
  const left = new AbortController();
  const options = { headers: { 'x-svc-api-key': KEY }, signal: left.signal };
  const { body } = await fetch(gateway.url + DOWNLOADS, options);
  await must(body, 'a body').getReader().read();
  left.abort();
  await until(() => counts.begun > 0 && counts.begun === counts.ended);
});

test('an unknown session is a 404, and a wrong method a 405', async () => {
  await using gateway = await openGateway(downloadsOf([]));
  const other = DOWNLOADS.replace(/1$/, '2').replace('0001/', '0002/');
  assert.is((await get(gateway.url, other)).status, 404);
  const { status, headers } = await ask(gateway.url, 'PUT', DOWNLOADS);
  assert.is(status, 405);
  assert.match(String(headers['allow']), /DELETE.*GET/);
});

test('filters are read strictly, times with an unencoded plus too', async () => {
  const asked: (Date | undefined)[] = [];
  await using gateway = await openGateway({
    downloads: {
      async listDownloads({ createdAfter, limit = 0, offset = 0 }) {
        asked.push(createdAfter);
        return { downloads: [], total: 0, limit, offset };
      },
    },
  });
  const list = async (query: string) => {
    const { status, json } = await ask(gateway.url, 'GET', `/v1/downloads?sessionId=x&${query}`);
    return [status, (json as { message?: string }).message];
  };
  for (const time of ['2026-05-03T12:53:37.151Z', '2026-05-03T14:53:37.151+02:00']) {
    assert.equal(await list(`createdAfter=${time}`), [200, undefined]);
    assert.equal(await list(`createdAfter=${encodeURIComponent(time)}`), [200, undefined]);
  }
  assert.equal(asked, [AT, AT, AT, AT]);
  for (const time of [
    ...['', 'yesterday', '2026-13-03T12:53:37Z', '2026-05-03', '1700000000000'],
    ...['0000-12-31T23:59:59Z', '9999-12-31T23:59:59-00:01'],
  ]) {
    const said = '`createdAfter` must be a date and time such as 2026-05-03T12:53:37Z.';
    assert.equal(await list(`createdAfter=${time}`), [400, said], time);
  }
  assert.equal(await list('minSize=x'), [400, '`minSize` must be a number.']);
});

test.run();
