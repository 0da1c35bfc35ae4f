import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { operationsOf, readContract } from '../../gateway/contract.ts';
import { Fault, REASONS, type Reason } from '../../proto/errors.ts';
import type { Call } from '../../proto/rpc.ts';
import { type Answer, ask, handlersOf, json, KEY, openDoor } from './door.ts';

const test = suite('gateway/app');
const PAGE = { data: [], limit: 20, nextCursor: null };

function assertBody({ status, json: body, headers }: Answer, error: string, message: string): void {
  assert.equal(body, { statusCode: status, error, message });
  assert.is(headers['content-type'], 'application/json; charset=utf-8');
  assert.ok(headers['x-request-id']);
  assert.is(headers['x-content-type-options'], 'nosniff');
  assert.is(headers['cache-control'], 'no-store');
}

async function openListing() {
  const calls: Call[] = [];
  const door = await openDoor({
    contexts: {
      async listContexts(_, call) {
        calls.push(call);
        return PAGE;
      },
    },
  });
  return { door, calls };
}

test('a key comes in either header, in any case', async () => {
  const { door, calls } = await openListing();
  await using _ = door;
  const accepted: Record<string, string>[] = [
    { 'X-SVC-API-Key': KEY },
    { 'x-bb-api-key': KEY },
    { 'X-BB-API-KEY': KEY, 'x-svc-api-key': KEY },
  ];
  for (const headers of accepted) {
    const answer = await fetch(`${door.url}/v1/contexts`, { headers });
    assert.is(answer.status, 200);
  }
  assert.equal(
    calls.map((call) => call.metadata['x-svc-api-key']),
    [KEY, KEY, KEY],
  );
});

test('no key, an empty one, one given twice, or two that differ: 401', async () => {
  const { door, calls } = await openListing();
  await using _ = door;
  const refused: Record<string, string | string[]>[] = [
    { 'x-svc-api-key': [] },
    { 'x-svc-api-key': '' },
    { 'x-svc-api-key': [KEY, KEY] },
    { 'x-svc-api-key': KEY, 'x-bb-api-key': `${KEY}x` },
    { 'x-svc-api-key': KEY, 'x-bb-api-key': '' },
  ];
  for (const headers of refused) {
    const answer = await ask(door.url, 'GET', '/v1/contexts', { headers });
    assert.is(answer.status, 401, JSON.stringify(headers));
    assertBody(answer, 'Unauthorized', 'Missing API key. Send it in the X-SVC-API-Key header.');
    assert.is(answer.headers['www-authenticate'], 'ApiKey realm="tabern"');
  }
  const odd = await ask(door.url, 'GET', '/v1/contexts', { headers: { 'x-svc-api-key': 'clé' } });
  assertBody(odd, 'Unauthorized', 'Invalid API key.');
  assert.is(calls.length, 0);
});

test('under /v1 the key comes before the route, elsewhere there is none', async () => {
  await using door = await openDoor();
  const none = { 'x-svc-api-key': [] as string[] };
  const wrong = { 'x-svc-api-key': 'svc_a-wrong-key-of-nobody' };
  assert.is((await ask(door.url, 'GET', '/v1/nothing', { headers: none })).status, 401);
  assert.is((await ask(door.url, 'GET', '/v1', { headers: none })).status, 401);
  assert.is((await ask(door.url, 'GET', '/v1/nothing', { headers: wrong })).status, 401);
  const bad = { headers: { ...wrong, 'content-type': 'application/json' }, body: '{' };
  assert.is((await ask(door.url, 'POST', '/v1/contexts', bad)).status, 401);
  assert.is((await ask(door.url, 'PUT', '/v1/contexts', { headers: wrong })).status, 401);
  const answer = await ask(door.url, 'GET', '/v1/nothing');
  assertBody(answer, 'Not Found', 'Route GET /v1/nothing not found.');
  for (const path of ['/nothing', '/', '/V1/contexts', '//v1/contexts', '/v1%2fcontexts']) {
    assert.is((await ask(door.url, 'GET', path, { headers: none })).status, 404, path);
  }
});

test('a method that a path does not have: 405 with Allow', async () => {
  await using door = await openDoor();
  const answer = await ask(door.url, 'DELETE', '/v1/contexts');
  assertBody(answer, 'Method Not Allowed', 'DELETE is not allowed here.');
  assert.is(answer.headers['allow'], 'GET, HEAD, POST');
  const build = await ask(door.url, 'PUT', '/v1/functions/builds');
  assert.is(build.headers['allow'], 'GET, HEAD, POST');
  for (const method of ['TRACE', 'OPTIONS', 'PROPFIND']) {
    assert.is((await ask(door.url, method, '/v1/contexts')).status, 405, method);
  }
  assert.is((await ask(door.url, 'POST', '/healthz')).status, 405);
});

test('a body that is not JSON by its type is a 415, by its text a 400', async () => {
  await using door = await openDoor();
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
    const answer = await ask(door.url, 'POST', '/v1/contexts', { headers, body });
    assert.is(answer.status, status, text.slice(0, 40));
  }
  const types = [
    'application/json',
    'Application/JSON; charset=UTF-8',
    'application/merge-patch+json',
  ];
  for (const type of types) {
    const headers = { 'content-type': type };
    const answer = await ask(door.url, 'POST', '/v1/contexts', { headers, body: '{"name":"x"}' });
    assert.is(answer.status, 501, type);
  }
});

test('a body above 1 MiB is a 413, whether its size is told or not', async () => {
  await using door = await openDoor();
  const body = JSON.stringify({ name: 'x'.repeat(1024 * 1024) });
  for (const coding of [{}, { 'transfer-encoding': 'chunked' }]) {
    const headers = { 'content-type': 'application/json', ...coding };
    const answer = await ask(door.url, 'POST', '/v1/contexts', { headers, body });
    assertBody(answer, 'Payload Too Large', 'The body must not exceed 1 MiB.');
  }
  const headers = { 'content-length': String(2 ** 21), 'x-svc-api-key': [] as string[] };
  const early = await ask(door.url, 'POST', '/v1/contexts', { headers, body: ' '.repeat(2 ** 21) });
  assert.is(early.status, 413, 'size comes before the key');
});

test('a URL above 8192 characters is a 414', async () => {
  await using door = await openDoor();
  const answer = await ask(door.url, 'GET', `/v1/contexts?cursor=${'x'.repeat(8_192)}`);
  assertBody(answer, 'URI Too Long', 'The URL is too long.');
});

test('each reason becomes its row of the table', async () => {
  let reason: Reason = 'INTERNAL';
  await using door = await openDoor({
    contexts: {
      async listContexts() {
        throw new Fault(reason, 'A sentence.');
      },
    },
  });
  for (const [name, row] of Object.entries(REASONS)) {
    reason = name as Reason;
    if (reason === 'CANCELLED') continue;
    const { status, headers, json: body } = await ask(door.url, 'GET', '/v1/contexts');
    assert.is(status, row.http, name);
    assert.is(Reflect.get(body as object, 'message'), 'A sentence.');
    const retryAfter = Number(headers['retry-after'] ?? 0);
    assert.is(retryAfter > 0 && retryAfter <= 60, row.retry === 'yes', name);
    if ([429, 503].includes(status)) assert.is(headers['x-should-retry'], 'true', name);
    if (status === 409) assert.is(headers['x-should-retry'], 'false', name);
    if (status === 404) assert.is(headers['x-should-retry'], undefined, name);
  }
});

test('an outcome that is unknown is not to be tried again, nor a deadline passed but on GET', async () => {
  const late = async () => {
    throw new Fault('DEADLINE', 'The request took too long.');
  };
  await using door = await openDoor({ contexts: { createContext: late, listContexts: late } });
  const post = await ask(door.url, 'POST', '/v1/contexts', json({}));
  assert.is(post.status, 504);
  assert.is(post.headers['x-should-retry'], 'false');
  assert.is((await ask(door.url, 'GET', '/v1/contexts')).headers['x-should-retry'], 'true');
});

test('an error that is no Fault tells nothing', async () => {
  await using door = await openDoor({
    contexts: {
      async listContexts() {
        throw new Error('SELECT secret FROM /var/lib');
      },
    },
  });
  const answer = await ask(door.url, 'GET', '/v1/contexts');
  assertBody(answer, 'Internal Server Error', 'An unexpected error occurred.');
  assert.is(answer.headers['x-should-retry'], undefined);
});

test('a request id is taken when it is one, made otherwise, and told to core', async () => {
  const { door, calls } = await openListing();
  await using _ = door;
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const headers = { 'x-request-id': 'my-id/1', traceparent };
  const answer = await ask(door.url, 'GET', '/v1/contexts', { headers });
  assert.is(answer.headers['x-request-id'], 'my-id/1');
  assert.is(calls[0]?.metadata['x-request-id'], 'my-id/1');
  assert.is(calls[0]?.metadata['traceparent'], traceparent);
  for (const bad of ['x'.repeat(129), 'a b', 'é']) {
    const made = await ask(door.url, 'GET', '/v1/contexts', { headers: { 'x-request-id': bad } });
    assert.match(String(made.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  }
  assert.is(calls[1]?.metadata['traceparent'], undefined);
});

test('core sees a deadline of 30 s, and an abort when the client leaves', async () => {
  const seen = Promise.withResolvers<Call>();
  const aborted = Promise.withResolvers<void>();
  await using door = await openDoor({
    contexts: {
      listContexts(_, call) {
        seen.resolve(call);
        call.signal.addEventListener('abort', () => aborted.resolve());
        return new Promise(() => undefined);
      },
    },
  });
  const leaving = new AbortController();
  const answer = fetch(`${door.url}/v1/contexts`, {
    headers: { 'x-svc-api-key': KEY },
    signal: leaving.signal,
  }).catch((error: Error) => error.name);
  const call = await seen.promise;
  const left = call.deadline - Date.now();
  assert.ok(left > 25_000 && left <= 30_000);
  leaving.abort();
  assert.is(await answer, 'AbortError');
  await aborted.promise;
});

test('/healthz needs no key and tells whether core answers', async () => {
  let isDown = false;
  await using door = await openDoor({
    projects: {
      async listProjects() {
        if (isDown) throw new Fault('CORE_UNAVAILABLE', 'connect ECONNREFUSED /a/path');
        throw new Fault('API_KEY_MISSING', 'Missing API key.');
      },
    },
  });
  const headers = { 'x-svc-api-key': [] as string[] };
  const well = await ask(door.url, 'GET', '/healthz', { headers });
  assert.is(well.status, 200);
  assert.is(well.text, '{"status":"ok"}');
  isDown = true;
  const down = await ask(door.url, 'GET', '/healthz', { headers });
  assertBody(down, 'Service Unavailable', 'The service is not ready.');
});

test('/openapi.json needs no key and holds every annotated route, and no other', async () => {
  await using door = await openDoor();
  const headers = { 'x-svc-api-key': [] as string[] };
  const answer = await ask(door.url, 'GET', '/openapi.json', { headers });
  assert.is(answer.status, 200);
  const { paths, components } = answer.json as {
    paths: Record<string, Record<string, { summary: string }>>;
    components: { schemas: Record<string, { properties: object }> };
  };
  const described = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.keys(verbs).map((verb) => `${verb} ${path}`),
  );
  const camel = (template: string) =>
    template.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const expected = operationsOf(readContract()).map((one) => `${one.verb} ${camel(one.template)}`);
  const byHand = ['get /healthz', 'post /v1/functions/builds'];
  assert.equal(described.sort(), [...expected, ...byHand].sort());
  for (const verbs of Object.values(paths)) {
    for (const operation of Object.values(verbs)) assert.ok(operation.summary);
  }
  assert.ok('createdAt' in (components.schemas['Context']?.properties ?? {}));
  const references = answer.text.matchAll(/#\/components\/schemas\/([\w.]+)/g);
  for (const [, name = ''] of references) assert.ok(components.schemas[name], name);
});

test('every annotated route reaches its RPC', async () => {
  const handlers = handlersOf({});
  const operations = operationsOf(readContract());
  await using door = await openDoor(handlers);
  for (const { verb, template } of operations) {
    if (template === '/v1/projects') continue;
    const path = template.replace(/\{\w+\}/g, 'x');
    const answer = await ask(door.url, verb.toUpperCase(), path);
    assert.is(answer.status, 501, `${verb} ${template}`);
  }
});

test.run();
