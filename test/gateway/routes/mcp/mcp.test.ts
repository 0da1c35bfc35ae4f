/** POST /mcp before a whole core: the protocol by the official client, keys, refusals, tenants. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { KEY } from '../../../core/boot.ts';
import { type Answer, ask } from '../../sessions/runner.ts';
import { makeTenant, type Tenant } from '../../tenants/tenant.ts';
import { openUploads } from '../files/contexts.ts';

const test = suite('gateway/routes/mcp');

type App = Awaited<ReturnType<typeof openUploads>>;
type Headers = Record<string, string | string[]>;

const TOOLS = [
  ...['session_start', 'session_list', 'session_end', 'live_view', 'handoff', 'handoff_wait'],
  ...['fetch', 'screenshot', 'function_list', 'function_invoke', 'function_logs'],
];
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const MISSING = '01a1fce4-ed84-7600-895f-0cf6ab39edc7';
const AS_BEARER: Headers = { 'x-svc-api-key': [], authorization: `Bearer ${KEY}` };

function post(app: App, body: unknown, headers: Headers = AS_BEARER): Promise<Answer> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const all = { 'content-type': 'application/json', ...headers };
  return ask(app.gateway.url, 'POST', '/mcp', { headers: all, body: text });
}

/** The text of the result, and whether it is an error. */
async function call(app: App, name: string, given: unknown, key = KEY): Promise<[string, boolean]> {
  const message = { ...LIST, method: 'tools/call', params: { name, arguments: given } };
  const { status, json, text } = await post(app, message, { 'x-svc-api-key': key });
  assert.is(status, 200, text);
  const { result } = json as {
    result?: { content: { text: string }[]; isError?: boolean };
  };
  const { content, isError = false } = must(result, `a result in ${text}`);
  return [content.map((one) => one.text).join('\n'), isError];
}

for (const mode of ['legacy', 'auto'] as const) {
  test(`the official client lists and calls tools (${mode})`, async () => {
    await using app = await openUploads();
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${app.gateway.url}/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${KEY}` } },
      }),
    );
    const { tools } = await client.listTools();
    assert.equal(
      tools.map(({ name }) => name),
      TOOLS,
    );
    const { content } = await client.callTool({ name: 'function_list', arguments: {} });
    assert.equal(content, [{ type: 'text', text: 'There are no functions.' }]);
    const [era] = (client.getNegotiatedProtocolVersion() ?? '').split('-');
    assert.is(era, mode === 'auto' ? '2026' : '2025');
    await client.close();
  });
}

test('without a valid key every message is a 401 with a challenge', async () => {
  await using app = await openUploads();
  const { key, revoke } = await app.otherKey();
  await revoke();
  const refused: Headers[] = [
    { 'x-svc-api-key': [] },
    { 'x-svc-api-key': [], authorization: `Bearer ${KEY}x` },
    { 'x-svc-api-key': [], authorization: `Bearer ${key}` },
    { 'x-svc-api-key': [], cookie: `tabern=${'x'.repeat(43)}`, 'sec-fetch-site': 'same-origin' },
  ];
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  for (const headers of refused) {
    for (const body of [LIST, ping, '{', { jsonrpc: '2.0', method: 'notifications/x' }]) {
      const answer = await post(app, body, headers);
      assert.is(answer.status, 401, JSON.stringify(headers));
      assert.match(String(answer.headers['www-authenticate']), /Bearer realm="tabern"/);
    }
  }
});

const manyValues = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`k${n}`, n]));

const REFUSED: [name: string, body: unknown, headers: Headers, status: number, words: string][] = [
  ['no JSON', '{', {}, 400, 'not valid JSON'],
  ['several messages', [LIST, LIST], {}, 400, 'must be one JSON-RPC message'],
  ['a text', '"x"', {}, 400, 'must be one JSON-RPC message'],
  ['no message', {}, {}, 400, 'not a valid JSON-RPC message'],
  ['many values', { ...LIST, params: { _meta: manyValues } }, {}, 400, 'at most 200 values'],
  ['another type', 'x', { 'content-type': 'text/plain' }, 415, 'application/json'],
  ['another Accept', LIST, { accept: 'text/html' }, 406, 'Not Acceptable'],
  ['an unknown version', LIST, { 'mcp-protocol-version': '1999-01-01' }, 400, '2025-11-25'],
  ['a page', LIST, { origin: 'http://example.com' }, 403, 'another origin'],
  ['a page without origin', LIST, { origin: 'null' }, 403, 'another origin'],
];

test('what is no message of a client is refused', async () => {
  await using app = await openUploads();
  for (const [name, body, headers, status, words] of REFUSED) {
    const answer = await post(app, body, { ...AS_BEARER, ...headers });
    assert.is(answer.status, status, `${name}: ${answer.text}`);
    assert.match(answer.text, words);
  }
  const notified = await post(app, { jsonrpc: '2.0', method: 'notifications/initialized' });
  assert.equal([notified.status, notified.text], [202, '']);
  const own = await post(app, LIST, { ...AS_BEARER, origin: app.gateway.url });
  assert.is(own.status, 200, own.text);
  for (const method of ['GET', 'DELETE']) {
    const answer = await ask(app.gateway.url, method, '/mcp', { headers: AS_BEARER });
    assert.equal([answer.status, answer.headers['allow']], [405, 'POST']);
  }
});

test('a page of any other name is refused: DNS can point a name at this service', async () => {
  await using app = await openUploads();
  const { port } = new URL(app.gateway.url);
  const rows: [host: string, status: number][] = [
    [`rebound.example.com:${port}`, 403],
    [`localhost:${port}`, 200],
    [`[::1]:${port}`, 200],
  ];
  for (const [host, status] of rows) {
    const answer = await post(app, LIST, { ...AS_BEARER, host, origin: `http://${host}` });
    assert.is(answer.status, status, `${host}: ${answer.text}`);
  }
});

test('an answer of the SDK that is a stream of events is named as such', async () => {
  await using app = await openUploads();
  const version = '2026-07-28';
  const method = 'subscriptions/listen';
  const name = 'io.modelcontextprotocol/';
  const _meta = {
    [`${name}protocolVersion`]: version,
    [`${name}clientInfo`]: { name: 'x', version: '1' },
    [`${name}clientCapabilities`]: {},
  };
  const params = { notifications: { toolsListChanged: true }, _meta };
  const headers = { ...AS_BEARER, 'mcp-protocol-version': version, 'mcp-method': method };
  const { status, headers: answered, text } = await post(app, { ...LIST, method, params }, headers);
  assert.is(status, 200, text);
  assert.match(text, /^event: message\n/);
  assert.match(String(answered['content-type']), /^text\/event-stream/);
});

const WRONG: [tool: string, given: unknown, words: string][] = [
  ['session_start', { timeout: 'x' }, '`timeout` must be a whole number.'],
  ['session_start', { timeout: 5 }, '`timeout` must be >= 60.'],
  ['session_start', { labels: 'x' }, '`labels` must be an array.'],
  ['session_start', { contextId: MISSING }, 'Context not found.'],
  ['session_start', { contextId: 'x' }, '`contextId` must be a UUID.'],
  ['session_start', { persist: true }, '`persist` needs contextId.'],
  ['session_start', { connectUrl: 'yes' }, '`connectUrl` must be a boolean.'],
  ['session_start', { viewport: { width: 'x' } }, '`browserSettings.viewport.width` must be'],
  ['session_start', { keepAlive: false }, '`keepAlive` is not an argument of session_start.'],
  ['session_list', { limit: 0 }, '`limit` must be a whole number from 1 to 50.'],
  ['session_list', { status: 'x' }, '`status` must be one of RUNNING,'],
  ['session_end', {}, '`sessionId` is required by session_end.'],
  ['session_end', { sessionId: 'x' }, '`sessionId` must be a UUID.'],
  ['session_end', [], '`arguments` must be an object.'],
  ['handoff', { sessionId: MISSING, instructions: 5 }, '`instructions` must be a string.'],
  ['handoff_wait', { sessionId: MISSING, handoffId: MISSING, wait: 60 }, '`wait` must be'],
  ['fetch', { url: 'ftp://x' }, '`url` must be an http or https URL.'],
  ['fetch', { url: 'http://x', format: 'pdf' }, '`format` must be one of markdown,'],
  ['fetch', { url: 'http://x', offset: -1 }, '`offset` must be a whole number'],
  ['screenshot', { url: 'http://x', timeout: 61 }, '`timeout` must be'],
  ['screenshot', { url: 'http://x', format: 'gif' }, '`format` must be one of jpeg,'],
  ['function_invoke', { function: 'nope' }, '`function` is not the id or name of a function.'],
  ['function_invoke', { function: MISSING }, 'Function not found.'],
  ['function_invoke', { function: MISSING, params: [] }, '`params` must be an object.'],
  ['function_logs', { invocationId: MISSING }, 'Invocation not found.'],
];

test('wrong arguments are results that name the field', async () => {
  await using app = await openUploads();
  for (const [tool, given, words] of WRONG) {
    const [text, isError] = await call(app, tool, given);
    assert.ok(isError, `${tool} ${text}`);
    assert.ok(text.startsWith(words), `${tool}: ${text}`);
  }
  const unknown = { ...LIST, method: 'tools/call', params: { name: 'x'.repeat(99) } };
  const { json } = await post(app, unknown);
  assert.match(JSON.stringify(json), /There is no tool \\"x{64}\\"/);
});

/** With an id of `objects`, for each kind that a tool takes. */
function calls({ objects }: Pick<Tenant, 'objects'>): [string, object][] {
  const { session: sessionId, handoff: handoffId, invocation: invocationId } = objects;
  const handoff = { sessionId, instructions: 'x' };
  return [
    ['live_view', { sessionId }],
    ['handoff', handoff],
    ['handoff_wait', { sessionId, handoffId, wait: 0 }],
    ['function_list', { function: objects.function }],
    ['function_invoke', { function: objects.function, wait: 0 }],
    ['function_logs', { invocationId }],
    ['session_start', { contextId: objects.context }],
    ['session_end', { sessionId }],
  ];
}

test("another project's objects are not found, and its lists are separate", async () => {
  await using app = await openUploads();
  const { clients, asOperator } = app;
  const { project } = await clients.operators.createProject(
    { name: 'other', limits: {} },
    asOperator,
  );
  const made = await clients.operators.createApiKey(
    { project: must(project?.project, 'a project').id, name: '' },
    asOperator,
  );
  const own = await makeTenant(app, KEY);
  const other = await makeTenant(app, made.key);
  for (const [tool, given] of calls(own)) {
    const [text, isError] = await call(app, tool, given, other.key);
    assert.ok(isError && /^\w+ not found\.$/.test(text), `${tool}: ${text}`);
  }
  // the name alone would be that of its own function
  const [list] = await call(app, 'function_list', {}, other.key);
  assert.ok(list.includes(other.objects.function) && !list.includes(own.objects.function), list);
  const [sessions] = await call(app, 'session_list', { status: 'any' }, other.key);
  assert.ok(sessions.includes(other.objects.session) && !sessions.includes(own.objects.session));
  const [seen, isError] = await call(app, 'live_view', { sessionId: own.objects.session });
  assert.ok(!isError && seen.includes('/live?'), seen);
});

test('no answer has the signing key of a session that it did not request', async () => {
  await using app = await openUploads();
  const { objects } = await makeTenant(app, KEY);
  for (const [tool, given] of [...calls({ objects }), ['session_list', {}] as const]) {
    if (tool === 'session_start') continue; // without a runner it waits
    const [text] = await call(app, tool, given);
    assert.not.match(text, /signingKey|\/connect/);
  }
});

test.run();
