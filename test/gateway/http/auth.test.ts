import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Call } from '../../../proto/rpc/local.ts';
import { ask, assertBody, KEY, openGateway, raw } from '../sessions/runner.ts';

const test = suite('gateway/http/auth');
const PAGE = { data: [], limit: 20, nextCursor: null };

async function openListing() {
  const calls: Call[] = [];
  const gateway = await openGateway({
    contexts: {
      async listContexts(_, call) {
        calls.push(call);
        return PAGE;
      },
    },
  });
  return { gateway, calls };
}

test('a key is read from each of its headers, in any case', async () => {
  const { gateway, calls } = await openListing();
  await using _ = gateway;
  const accepted: Record<string, string>[] = [
    { 'X-SVC-API-Key': KEY },
    { 'x-bb-api-key': KEY },
    { 'X-BB-API-KEY': KEY, 'x-svc-api-key': KEY },
    { authorization: `Bearer ${KEY}` },
    { Authorization: `bearer  ${KEY}`, 'x-svc-api-key': KEY },
    { authorization: 'Basic dXNlcjpwdw==', 'x-svc-api-key': KEY },
  ];
  for (const headers of accepted) {
    const answer = await fetch(`${gateway.url}/v1/contexts`, { headers });
    assert.is(answer.status, 200);
  }
  assert.equal(
    calls.map((call) => call.metadata['x-svc-api-key']),
    accepted.map(() => KEY),
  );
});

test('a missing, empty or repeated key, or two different ones: 401', async () => {
  const { gateway, calls } = await openListing();
  await using _ = gateway;
  const refused: Record<string, string | string[]>[] = [
    { 'x-svc-api-key': [] },
    { 'x-svc-api-key': '' },
    { 'x-svc-api-key': [KEY, KEY] },
    { 'x-svc-api-key': KEY, 'x-bb-api-key': `${KEY}x` },
    { 'x-svc-api-key': KEY, 'x-bb-api-key': '' },
    { 'x-svc-api-key': [], authorization: 'Bearer ' },
    { 'x-svc-api-key': [], authorization: 'Basic dXNlcjpwdw==' },
    { 'x-svc-api-key': [], authorization: KEY },
    { 'x-svc-api-key': KEY, authorization: `Bearer ${KEY}x` },
  ];
  for (const headers of refused) {
    const answer = await ask(gateway.url, 'GET', '/v1/contexts', { headers });
    assert.is(answer.status, 401, JSON.stringify(headers));
    assertBody(answer, 'Unauthorized', 'Missing API key. Send it in the X-SVC-API-Key header.');
    assert.is(answer.headers['www-authenticate'], 'ApiKey realm="tabern", Bearer realm="tabern"');
  }
  const odd = await ask(gateway.url, 'GET', '/v1/contexts', {
    headers: { 'x-svc-api-key': 'clé' },
  });
  assertBody(odd, 'Unauthorized', 'Invalid API key.');
  assert.is(calls.length, 0);
});

test('under /v1 the key is checked before the route, elsewhere not at all', async () => {
  await using gateway = await openGateway();
  const none = { 'x-svc-api-key': [] as string[] };
  const wrong = { 'x-svc-api-key': 'svc_a-wrong-key-of-nobody' };
  assert.is((await ask(gateway.url, 'GET', '/v1/nothing', { headers: none })).status, 401);
  assert.is((await ask(gateway.url, 'GET', '/v1', { headers: none })).status, 401);
  assert.is((await ask(gateway.url, 'GET', '/v1/nothing', { headers: wrong })).status, 401);
  const bad = { headers: { ...wrong, 'content-type': 'application/json' }, body: '{' };
  assert.is((await ask(gateway.url, 'POST', '/v1/contexts', bad)).status, 401);
  assert.is((await ask(gateway.url, 'PUT', '/v1/contexts', { headers: wrong })).status, 401);
  const answer = await ask(gateway.url, 'GET', '/v1/nothing');
  assertBody(answer, 'Not Found', 'Route GET /v1/nothing not found.');
  assert.is((await ask(gateway.url, 'GET', '/', { headers: none })).status, 302);
  for (const path of ['/nothing', '/V1/contexts', '//v1/contexts', '/v1%2fcontexts']) {
    assert.is((await ask(gateway.url, 'GET', path, { headers: none })).status, 404, path);
  }
});

test('an invalid key is refused before a large body is read', async () => {
  await using gateway = await openGateway();
  for (const size of ['content-length: 1000000', 'transfer-encoding: chunked']) {
    const head = [
      'POST /v1/contexts HTTP/1.1',
      'host: x',
      'x-svc-api-key: svc_a-wrong-key-of-nobody',
      'content-type: application/json',
      size,
    ];
    // the body never comes: who waited for it would answer 408
    const answer = await raw(gateway.url, `${head.join('\r\n')}\r\n\r\n`, /Invalid API key/);
    assert.match(answer, /^HTTP\/1\.1 401 /);
  }
});

test('a valid request id is kept, another is replaced, and core receives it', async () => {
  const { gateway, calls } = await openListing();
  await using _ = gateway;
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const headers = { 'x-request-id': 'my-id/1', traceparent };
  const answer = await ask(gateway.url, 'GET', '/v1/contexts', { headers });
  assert.is(answer.headers['x-request-id'], 'my-id/1');
  assert.is(calls[0]?.metadata['x-request-id'], 'my-id/1');
  assert.is(calls[0]?.metadata['traceparent'], traceparent);
  for (const bad of ['x'.repeat(129), 'a b', 'é']) {
    const made = await ask(gateway.url, 'GET', '/v1/contexts', {
      headers: { 'x-request-id': bad },
    });
    assert.match(String(made.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  }
  assert.is(calls[1]?.metadata['traceparent'], undefined);
});

test('core receives a deadline of 30 s, and an abort when the client disconnects', async () => {
  const seen = Promise.withResolvers<Call>();
  const aborted = Promise.withResolvers<void>();
  await using gateway = await openGateway({
    contexts: {
      listContexts(_, call) {
        seen.resolve(call);
        call.signal.addEventListener('abort', () => aborted.resolve());
        return new Promise(() => undefined);
      },
    },
  });
  const leaving = new AbortController();
  const answer = fetch(`${gateway.url}/v1/contexts`, {
    headers: { 'x-svc-api-key': KEY },
    signal: leaving.signal,
  }).catch((error: Error) => error.name);
  const call = await seen.promise;
  const left = call.deadline - performance.now();
  assert.ok(left > 10_000 && left <= 30_000);
  leaving.abort();
  assert.is(await answer, 'AbortError');
  await aborted.promise;
});

test('setting the clock while a body arrives changes no deadline', async () => {
  const begun = Promise.withResolvers<void>();
  const seen = Promise.withResolvers<Call>();
  await using gateway = await openGateway({
    projects: {
      async listProjects() {
        begun.resolve(); // the key of a large body is checked before it is read
        return { projects: [] };
      },
    },
    contexts: {
      async createContext(_, call) {
        seen.resolve(call);
        throw new Fault('NOT_IMPLEMENTED', 'not here');
      },
    },
  });
  const body = Buffer.from(JSON.stringify({ name: 'x'.repeat(20_000) }));
  const headers = { 'x-svc-api-key': KEY, 'content-type': 'application/json' };
  const length = { 'content-length': body.length };
  const url = `${gateway.url}/v1/contexts`;
  const sent = request(url, { method: 'POST', headers: { ...headers, ...length } });
  const answered = once(sent, 'response');
  sent.write(body.subarray(0, 9));
  await begun.promise;
  const real = Date.now;
  Date.now = () => real() + 3_600_000;
  try {
    sent.end(body.subarray(9));
    const left = (await seen.promise).deadline - performance.now();
    assert.ok(left > 10_000, `${left} ms are left`);
    const [answer] = (await answered) as [IncomingMessage];
    assert.is(answer.statusCode, 501);
    answer.resume();
  } finally {
    Date.now = real;
  }
});

test.run();
