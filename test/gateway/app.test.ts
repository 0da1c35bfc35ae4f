import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { operationsOf, readContract } from '../../gateway/rest/operations.ts';
import { Fault, REASONS, type Reason } from '../../proto/rpc/errors.ts';
import { ask, assertBody, handlersOf, json, openGateway } from './sessions/runner.ts';

const test = suite('gateway/app');

test('an unknown method of a path is 405 with Allow', async () => {
  await using gateway = await openGateway();
  const answer = await ask(gateway.url, 'DELETE', '/v1/contexts');
  assertBody(answer, 'Method Not Allowed', 'DELETE is not allowed here.');
  assert.is(answer.headers['allow'], 'GET, HEAD, POST');
  const build = await ask(gateway.url, 'PUT', '/v1/functions/builds');
  // also DELETE /v1/functions/{id}, which answers that `builds` is no id
  assert.is(build.headers['allow'], 'DELETE, GET, HEAD, POST');
  for (const method of ['TRACE', 'OPTIONS', 'PROPFIND']) {
    assert.is((await ask(gateway.url, method, '/v1/contexts')).status, 405, method);
  }
  assert.is((await ask(gateway.url, 'POST', '/healthz')).status, 405);
});

test('a trailing slash, a double slash or an encoded letter is another path: 404', async () => {
  const page = { data: [], limit: 20, nextCursor: null };
  await using gateway = await openGateway({ contexts: { listContexts: async () => page } });
  assert.is((await ask(gateway.url, 'GET', '/v1/contexts')).status, 200);
  const paths = ['/v1/contexts/', '/v1//contexts', '//v1/contexts', '/v1/%63ontexts', '/healthz/'];
  for (const path of paths) {
    const answer = await ask(gateway.url, 'GET', path);
    assertBody(answer, 'Not Found', `Route GET ${path} not found.`);
  }
  assert.is((await ask(gateway.url, 'POST', '/v1/functions/builds/')).status, 404);
});

test('a content type that is not JSON is a 415, a text that is not a 400', async () => {
  await using gateway = await openGateway();
  const refused: [Record<string, string>, string, number][] = [
    [{ 'content-type': 'text/plain' }, '{}', 415],
    [{}, '{}', 415],
    [{ 'content-type': 'application/json; charset=latin1' }, '{}', 415],
    [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }, '{}', 415],
    [{ 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }, '{}', 415],
    [{ 'content-type': 'application/json' }, '{', 400],
    [{ 'content-type': 'application/json' }, ' ', 400],
    [{ 'content-type': 'application/json' }, '{"__proto__":{"name":"x"}}', 400],
    [{ 'content-type': 'application/json' }, '{"a":{"\\u005f_proto__":1}}', 400],
    [{ 'content-type': 'application/json' }, '{"name":"\\ud800"}', 400],
    [{ 'content-type': 'application/json' }, '{"name":1e400}', 400],
    [{ 'content-type': 'application/json' }, '['.repeat(65) + ']'.repeat(65), 400],
    [{ 'content-type': 'application/json' }, '['.repeat(200_000) + ']'.repeat(200_000), 400],
    [{ 'content-type': 'application/json' }, '{"name":"\xff"}', 400],
  ];
  for (const [headers, text, status] of refused) {
    const body = Buffer.from(text, 'latin1');
    const answer = await ask(gateway.url, 'POST', '/v1/contexts', { headers, body });
    assert.is(answer.status, status, text.slice(0, 40));
  }
  const types = [
    'application/json',
    'Application/JSON; charset=UTF-8',
    'application/merge-patch+json',
  ];
  for (const type of types) {
    const headers = { 'content-type': type };
    const answer = await ask(gateway.url, 'POST', '/v1/contexts', {
      headers,
      body: '{"name":"x"}',
    });
    assert.is(answer.status, 501, type);
  }
});

test('a body above 1 MiB is a 413, with a declared size or without', async () => {
  await using gateway = await openGateway();
  const body = JSON.stringify({ name: 'x'.repeat(1024 * 1024) });
  for (const coding of [{}, { 'transfer-encoding': 'chunked' }]) {
    const headers = { 'content-type': 'application/json', ...coding };
    const answer = await ask(gateway.url, 'POST', '/v1/contexts', { headers, body });
    assertBody(answer, 'Payload Too Large', 'The body must not exceed 1 MiB.');
  }
  const headers = { 'content-length': String(2 ** 21), 'x-svc-api-key': [] as string[] };
  const early = await ask(gateway.url, 'POST', '/v1/contexts', {
    headers,
    body: ' '.repeat(2 ** 21),
  });
  assert.is(early.status, 413, 'size comes before the key');
});

test('a URL above 8192 characters is a 414', async () => {
  await using gateway = await openGateway();
  const answer = await ask(gateway.url, 'GET', `/v1/contexts?cursor=${'x'.repeat(8_192)}`);
  assertBody(answer, 'URI Too Long', 'The URL is too long.');
});

test('each reason becomes its row of the table', async () => {
  let reason: Reason = 'INTERNAL';
  await using gateway = await openGateway({
    contexts: {
      async listContexts() {
        throw new Fault(reason, 'A sentence.');
      },
    },
  });
  for (const [name, row] of Object.entries(REASONS)) {
    reason = name as Reason;
    if (reason === 'CANCELLED') continue;
    const { status, headers, json: body } = await ask(gateway.url, 'GET', '/v1/contexts');
    assert.is(status, row.http, name);
    assert.is(Reflect.get(body as object, 'message'), 'A sentence.');
    const retryAfter = Number(headers['retry-after'] ?? 0);
    assert.is(retryAfter > 0 && retryAfter <= 60, row.retry === 'yes', name);
    if ([429, 503].includes(status)) assert.is(headers['x-should-retry'], 'true', name);
    const isFinal = status >= 500 && row.retry === 'no';
    const again = String(row.retry === 'yes');
    if (status === 409 || isFinal) assert.is(headers['x-should-retry'], again, name);
    if (status === 404) assert.is(headers['x-should-retry'], undefined, name);
  }
});

test('a limit sets rate-limit headers, with a local and a remote core', async () => {
  let facts: Record<string, string | number> = { limit: 3, current: 3 };
  await using gateway = await openGateway({
    contexts: {
      async listContexts() {
        throw new Fault('CONCURRENCY_LIMIT', 'Too many.', facts);
      },
    },
  });
  const seen = async () => {
    const { headers } = await ask(gateway.url, 'GET', '/v1/contexts');
    const names = ['limit', 'remaining', 'reset'].map((name) => `x-ratelimit-${name}`);
    return [...names, 'retry-after'].map((name) => headers[name]);
  };
  assert.equal(await seen(), ['3', '0', '5', '5']);
  facts = { limit: '9', current: '7' };
  assert.equal(await seen(), ['9', '2', '5', '5']);
  facts = { limit: 5, current: 5, retryAfterS: 42 };
  assert.equal(await seen(), ['5', '0', '42', '42']);
  facts = { limit: 5, current: 5, retryAfterS: '300' };
  assert.equal(await seen(), ['5', '0', '300', '60'], 'clients would wait as long as we say');
  facts = {};
  assert.equal(await seen(), [undefined, undefined, undefined, '5']);
});

test('an exceeded deadline may be retried on GET only', async () => {
  const late = async () => {
    throw new Fault('DEADLINE', 'The request took too long.');
  };
  await using gateway = await openGateway({
    contexts: { createContext: late, listContexts: late },
  });
  const post = await ask(gateway.url, 'POST', '/v1/contexts', json({}));
  assert.is(post.status, 504);
  assert.is(post.headers['x-should-retry'], 'false');
  assert.is((await ask(gateway.url, 'GET', '/v1/contexts')).headers['x-should-retry'], 'true');
});

test('an error that is no Fault reveals nothing', async () => {
  await using gateway = await openGateway({
    contexts: {
      async listContexts() {
        throw new Error('SELECT secret FROM /var/lib');
      },
    },
  });
  const answer = await ask(gateway.url, 'GET', '/v1/contexts');
  assertBody(answer, 'Internal Server Error', 'An unexpected error occurred.');
  assert.is(answer.headers['x-should-retry'], undefined);
});

test('every annotated route reaches its RPC', async () => {
  const handlers = handlersOf({});
  const operations = operationsOf(readContract());
  await using gateway = await openGateway(handlers);
  for (const { verb, template } of operations) {
    if (template === '/v1/projects') continue;
    const path = template.replace(/\{\w+\}/g, 'x');
    const headers = path.startsWith('/console/api/v1/shared') ? { 'x-tabern-share': 'x' } : {};
    const answer = await ask(gateway.url, verb.toUpperCase(), path, { headers });
    assert.is(answer.status, 501, `${verb} ${template}`);
  }
});

test.run();
