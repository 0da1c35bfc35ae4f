/** The local server of `tabern dev`. Its routes and responses: proto/spec/functions.md 9. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { CliError } from '../../../../runner/cli/config.ts';
import { openDevPages } from '../../../../runner/cli/dev/pages.ts';
import { openDevRuns } from '../../../../runner/cli/dev/runs.ts';
import { type DevFunctions, openDevServer } from '../../../../runner/cli/dev/server.ts';
import { errorOf } from '../../../support/fault.ts';
import { freePort } from '../../../support/port.ts';
import { tempDirectory, writeTree } from '../../../support/temp.ts';

const dev = suite('runner/cli/dev/server');
const FAILURE = { message: 'no', type: 'RangeError', stackTrace: ['RangeError: no', 'at x.ts:1'] };

/** The name of a function is its outcome. */
const FUNCTIONS: DevFunctions = {
  problem: () => undefined,
  has: (name) => !name.startsWith('un'),
  async run({ name, params }) {
    if (name === 'fails') return { failure: FAILURE };
    if (name === 'throws') throw new Error('the browser could not be started');
    if (name === 'nothing') return { json: undefined };
    return { json: name === 'null' ? 'null' : JSON.stringify({ name, params }) };
  },
};

async function open(functions: DevFunctions = FUNCTIONS) {
  const where = { host: '127.0.0.1', port: await freePort() };
  const server = await openDevServer(where, functions);
  const post = async (name: string, body?: string) => {
    const url = `${server.url}/v1/functions/${name}/invoke`;
    const headers = { 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body, headers };
    const answer = await fetch(url, { method: 'POST', ...sent });
    return { status: answer.status, json: await answer.json() };
  };
  return { ...server, where, post };
}

dev('GET / responds ok, without CORS headers', async () => {
  await using server = await open();
  const answer = await fetch(server.url);
  assert.is(answer.headers.get('access-control-allow-origin'), null);
  assert.equal(await answer.json(), { ok: true });
  const asked = await fetch(`${server.url}/v1/functions/a/invoke`, { method: 'OPTIONS' });
  assert.is(asked.status, 404);
});

const JSON_TYPE = { 'content-type': 'application/json' };
for (const [what, headers, status] of [
  ['text/plain, which a page of another site can send,', { 'content-type': 'text/plain' }, 415],
  ['a form of a page', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ['a request without a content type', {}, 415],
  ['a page of another site', { ...JSON_TYPE, 'sec-fetch-site': 'cross-site' }, 403],
  ['a page of another port of this machine', { ...JSON_TYPE, 'sec-fetch-site': 'same-site' }, 403],
  ['a foreign origin', { ...JSON_TYPE, origin: 'https://evil.test' }, 403],
  [
    'a foreign host name that resolves to this machine',
    { ...JSON_TYPE, host: 'evil.test:14113' },
    403,
  ],
] as const) {
  dev(`${what} runs no function`, async () => {
    let runs = 0;
    const run: DevFunctions['run'] = async () => {
      runs += 1;
      return { json: '1' };
    };
    await using server = await open({ ...FUNCTIONS, run });
    const path = '/v1/functions/echo/invoke';
    const host = `127.0.0.1:${server.where.port}`;
    const options = { ...server.where, method: 'POST', path, headers: { host, ...headers } };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request(options, resolve).on('error', reject).end('{}');
    const answer = await promise;
    answer.resume();
    assert.equal([answer.statusCode, runs], [status, 0]);
    assert.is(answer.headers['access-control-allow-origin'], undefined);
  });
}

for (const [name, body, status, json] of [
  ['echo', '{"params": {"a": 1}}', 200, { name: 'echo', params: { a: 1 } }],
  ['a%20b', '{"params": {}, "context": {}}', 200, { name: 'a b', params: {} }],
  ['echo', undefined, 200, { name: 'echo', params: {} }],
  ['nothing', '{}', 200, {}],
  ['null', '{}', 200, {}],
  ['fails', '{}', 500, { error: FAILURE }],
  ['throws', '{}', 500, { error: { message: 'the browser could not be started' } }],
  ['unknown', '{}', 404, { error: { message: 'there is no function "unknown"' } }],
  ['echo', '{', 400, { error: { message: 'the body is not JSON' } }],
  ['echo', '[]', 400, undefined],
  ['echo', '{"params": []}', 400, { error: { message: 'params must be an object' } }],
  ['echo', `{"params": {"a": "${'x'.repeat(64 * 1024)}"}}`, 400, undefined],
  ['echo', `{"context": "${'x'.repeat(128 * 1024)}"}`, 400, undefined],
] as const) {
  dev(`${name} with the body ${body?.slice(0, 40)} responds ${status}`, async () => {
    await using server = await open();
    const answer = await server.post(name, body);
    assert.is(answer.status, status);
    if (json !== undefined) assert.equal(answer.json, json);
  });
}

dev('a second invocation receives 503 until the first has ended', async () => {
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  await using server = await open({
    ...FUNCTIONS,
    async run() {
      begun.resolve();
      await held.promise;
      return { json: '1' };
    },
  });
  const first = server.post('slow', '{}');
  await begun.promise;
  assert.is((await server.post('slow', '{}')).status, 503);
  held.resolve();
  assert.equal(await first, { status: 200, json: 1 });
  assert.is((await server.post('slow', '{}')).status, 200);
});

dev('while the sources cannot be built, 503 has the build error', async () => {
  await using server = await open({ ...FUNCTIONS, problem: () => 'index.ts:3: Unexpected ";"' });
  const answer = await server.post('echo', '{}');
  assert.equal(answer, { status: 503, json: { error: { message: 'index.ts:3: Unexpected ";"' } } });
});

dev('an invocation is aborted when its client disconnects', async () => {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  await using server = await open({
    ...FUNCTIONS,
    async run(_wanted, signal) {
      signal.addEventListener('abort', () => ended.resolve());
      begun.resolve();
      await ended.promise;
      return { json: undefined };
    },
  });
  const leaving = new AbortController();
  const url = `${server.url}/v1/functions/slow/invoke`;
  const call = fetch(url, { method: 'POST', signal: leaving.signal });
  await begun.promise;
  leaving.abort();
  assert.is(((await errorOf(call)) as Error).name, 'AbortError');
  await ended.promise;
});

dev('the error for a port in use names --port', async () => {
  await using server = await open();
  const error = await errorOf(openDevServer(server.where, FUNCTIONS));
  assert.instance(error, CliError);
  assert.match((error as Error).message, /is taken; choose another with --port/);
});

/** A built page, and a server that has it. */
async function openWithPages(given: Partial<DevFunctions> = {}) {
  await using cleanup = new AsyncDisposableStack();
  const temp = cleanup.use(tempDirectory());
  writeTree(temp.path, { 'dev.html': '<!doctype html>', 'assets/dev-A.js': 'code', secret: 'x' });
  const runs = openDevRuns(() => 0);
  const folder = pathToFileURL(join(temp.path, '/'));
  const pages = openDevPages(folder, { runs, names: () => ['echo'] });
  const run: DevFunctions['run'] = async ({ name, params, begun }) => {
    const record = runs.begin(name, params);
    begun?.(record.id);
    const outcome = { json: JSON.stringify(params) };
    record.end(outcome, []);
    return outcome;
  };
  const server = cleanup.use(await open({ ...FUNCTIONS, run, pages, ...given }));
  const kept = cleanup.move();
  const start = (body: unknown, headers: Record<string, string> = JSON_TYPE) =>
    fetch(`${server.url}/console/api/runs`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
  return { ...server, runs, start, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

dev('the page, its files and its runs are served with the policy of the console', async () => {
  await using server = await openWithPages();
  const started = await server.start({ functionName: 'echo', params: { a: 1 } });
  assert.is(started.status, 201);
  const { id } = (await started.json()) as { id: string };
  const paths: [path: string, type: RegExp][] = [
    ['/console', /^text\/html/],
    [`/console/runs/${id}`, /^text\/html/],
    ['/console/assets/dev-A.js', /^text\/javascript/],
    ['/console/api/runs', /^application\/json/],
    [`/console/api/runs/${id}`, /^application\/json/],
  ];
  for (const [path, type] of paths) {
    const answer = await fetch(server.url + path);
    assert.is(answer.status, 200, path);
    assert.match(String(answer.headers.get('content-type')), type);
    assert.match(String(answer.headers.get('content-security-policy')), /require-trusted-types/);
    assert.is(answer.headers.get('access-control-allow-origin'), null);
  }
  const answer = await fetch(`${server.url}/console/api/runs/${id}`);
  const run = (await answer.json()) as Record<string, unknown>;
  assert.equal([run['params'], run['results'], run['status']], [{ a: 1 }, { a: 1 }, 'COMPLETED']);
});

dev('no path leads out of the folder of the page, and an unknown run is a 404', async () => {
  await using server = await openWithPages();
  const paths = [
    ...['/console/assets/../secret', '/console/assets/%2e%2e/secret', '/console/secret'],
    ...['/console/assets/..%2fsecret', '/console/assets/', '/console/api/runs/x'],
    '/console/api/runs/0196f7aa-0000-7000-8000-000000000001',
  ];
  for (const path of paths) assert.is((await raw(server.where, { path })).status, 404, path);
});

dev('a run is started by JSON of a known function, and by no other site', async () => {
  await using server = await openWithPages();
  const echo = { functionName: 'echo' };
  const refused: [body: unknown, headers: Record<string, string>, status: number][] = [
    [echo, { 'content-type': 'text/plain' }, 415],
    [{}, JSON_TYPE, 400],
    [{ functionName: 1 }, JSON_TYPE, 400],
    [{ ...echo, params: [] }, JSON_TYPE, 400],
    [[], JSON_TYPE, 400],
    [{ functionName: 'unknown' }, JSON_TYPE, 404],
  ];
  for (const [body, headers, status] of refused) {
    const answer = await server.start(body, headers);
    assert.is(answer.status, status, JSON.stringify(body));
    const { message } = (await answer.json()) as { message: string };
    assert.ok(message.length > 0);
  }
  const strangers = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.test' },
    { host: 'evil.test:14113' },
  ];
  for (const stranger of strangers) {
    const headers = { ...JSON_TYPE, ...stranger };
    for (const method of ['GET', 'POST']) {
      const path = '/console/api/runs';
      assert.is((await raw(server.where, { method, path, headers })).status, 403);
    }
    const page = await raw(server.where, { path: '/console', headers });
    assert.is(page.status, 403, 'the page');
  }
  assert.equal(server.runs.list(), []);
});

dev('without a built console there is no page, and no run by it', async () => {
  await using dir = tempDirectory();
  const sources = { runs: openDevRuns(() => 0), names: () => [] };
  assert.is(openDevPages(pathToFileURL(join(dir.path, '/')), sources), undefined);
  await using server = await open();
  for (const method of ['GET', 'POST']) {
    const path = '/console/api/runs';
    assert.is((await raw(server.where, { method, path, headers: JSON_TYPE })).status, 404);
  }
});

type Raw = { path: string; method?: string; headers?: Record<string, string> };

/** A request with any path and any header, as fetch does not send it. */
async function raw(where: { host: string; port: number }, { headers, ...asked }: Raw) {
  const own = { host: `${where.host}:${where.port}`, ...headers };
  const call = request({ ...where, method: 'GET', ...asked, headers: own });
  const body = asked.method === 'POST' ? '{"functionName":"echo"}' : undefined;
  call.end(body);
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  answer.resume();
  return { status: answer.statusCode ?? 0 };
}

dev.run();
