/** A search by a SearXNG: its answers, good and bad, and the limits of a search. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { webSearch } from '../../../core/functions/one-shots/search.ts';
import type { Fault } from '../../../proto/rpc/errors.ts';
import { until } from '../../support/poll.ts';

const test = suite('core/functions/search');

const RESULT = {
  url: 'https://inn.example/',
  title: 'The inn',
  publishedDate: '2026-11-01T10:00:00',
  img_src: 'javascript:1',
  thumbnail: 'https://inn.example/a.png',
};

/** An engine that answers with that status and body, and what it was asked. */
async function startEngine(status: number, body: string) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/engine`;
  return { url, asked, [Symbol.dispose]: () => void server.close() };
}

function ask(url: string | undefined, request: { query: string; numResults?: number }) {
  const { signal } = new AbortController();
  const call = { signal, deadline: performance.now() + 30_000, metadata: {} };
  return webSearch(url)(request, { projectId: 'p', call });
}

async function refused(url: string | undefined, request: { query: string; numResults?: number }) {
  const error = await ask(url, request).then(
    () => undefined,
    (fault: Fault) => fault,
  );
  return `${error?.reason} ${error?.message}`;
}

test('results have the form of the interface, and as many as were asked for', async () => {
  const odd = [{ title: 'no address' }, null, { url: 'ftp://x/' }, { url: 'http://b.example/' }];
  using engine = await startEngine(200, JSON.stringify({ results: [RESULT, ...odd, RESULT] }));
  const { query, requestId, results } = await ask(engine.url, {
    query: 'inn & bed',
    numResults: 2,
  });
  assert.equal(engine.asked, ['/engine/search?q=inn+%26+bed&format=json']);
  assert.is(query, 'inn & bed');
  assert.match(requestId, /^[0-9a-f-]{36}$/);
  assert.equal(
    results.map(({ id, ...rest }) => rest),
    [
      {
        url: 'https://inn.example/',
        title: 'The inn',
        author: undefined,
        image: 'https://inn.example/a.png',
        publishedDate: '2026-11-01T10:00:00.000Z',
      },
      {
        url: 'http://b.example/',
        title: 'http://b.example/',
        author: undefined,
        image: undefined,
        publishedDate: undefined,
      },
    ],
  );
});

test('an engine that does not answer with results is a 502', async () => {
  for (const [status, body] of [
    [403, ''],
    [200, '<html>'],
    [200, `{"results":["${'x'.repeat(1 << 20)}"]}`],
  ] as const) {
    using engine = await startEngine(status, body);
    assert.match(await refused(engine.url, { query: 'a' }), /^SEARCH_FAILED /);
  }
  assert.match(await refused('http://127.0.0.1:1/', { query: 'a' }), /^SEARCH_FAILED /);
  using engine = await startEngine(200, '{}');
  assert.equal((await ask(engine.url, { query: 'a' })).results, []);
});

test('a flood of one project leaves searches to a second one', async () => {
  const waiting: ServerResponse[] = [];
  const server = createServer((_, response) => void waiting.push(response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const search = webSearch(url);
  const of = (projectId: string) => {
    const { signal } = new AbortController();
    const call = { signal, deadline: performance.now() + 30_000, metadata: {} };
    return search({ query: 'a', numResults: undefined }, { projectId, call });
  };
  try {
    const flood = Array.from({ length: 40 }, () => of('many').catch(({ reason }: Fault) => reason));
    const second = of('few');
    await until(() => waiting.length === 17);
    for (const response of waiting) response.end('{"results":[]}');
    assert.equal((await second).results, []);
    const outcomes = await Promise.all(flood);
    assert.is(outcomes.filter((one) => one === 'CONCURRENCY_LIMIT').length, 24);
    const later = of('many');
    await until(() => waiting.length === 18);
    waiting.at(-1)?.end('{"results":[]}');
    assert.equal((await later).results, [], 'the places are free again');
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('a query, a number and an engine are required', async () => {
  const url = 'http://127.0.0.1:1/';
  assert.match(await refused(url, { query: ' ' }), /^INVALID_FIELD `query` must be 1 to 200/);
  assert.match(await refused(url, { query: 'x'.repeat(201) }), /^INVALID_FIELD `query`/);
  assert.match(await refused(url, { query: 'a', numResults: 26 }), /^INVALID_FIELD `numResults`/);
  assert.match(await refused(undefined, { query: 'a' }), /^NOT_IMPLEMENTED .*TABERN_SEARCH_URL/);
});

test.run();
