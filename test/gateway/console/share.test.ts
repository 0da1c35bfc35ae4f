/** Links to one session: what their holders read, what is refused, and how they end. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { operationsOf, readContract } from '../../../gateway/rest/operations.ts';
import { must } from '../../../proto/common/must.ts';
import { CreateSessionRequest } from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { bring } from '../../core/sessions/recordings/recorded.ts';
import { faultOf } from '../../support/fault.ts';
import { type Answer, type Console, KEY, messageOf, openConsole } from './console.ts';

const test = suite('gateway/console/share');

const SHARED = '/console/api/v1/shared';
const PARTS = ['', '/debug', '/logs', '/replays', '/replays/0'].map((part) => SHARED + part);
const HOUR_S = 3_600;
const SECRET = 'metadata-of-the-customer';
const UPGRADE = {
  connection: 'upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

/** A session that runs, with metadata and a recorded page. */
async function openShared(console: Console) {
  const { app } = console;
  const userMetadata = { customer: SECRET };
  const wanted = CreateSessionRequest.create({ userMetadata, keepAlive: true });
  const creating = app.clients.sessions.createSession(wanted, app.asProject);
  const { leaseId } = must((await app.lease('SESSION', 25_000))[0], 'a session to lease');
  await app.clients.runners.startSession({ leaseId, startMs: app.clock.now() }, app.asRunner);
  const session = must((await creating).session, 'a session');
  await bring(app, { id: session.id, leaseId });
  return { id: session.id, leaseId };
}

type Terms = { expiresIn?: number; hasLog?: boolean; cookie?: string };

async function linkTo(console: Console, id: string, terms: Terms = {}): Promise<string> {
  const { cookie = await console.logIn(), expiresIn = HOUR_S, hasLog = true } = terms;
  const path = `/console/api/v1/sessions/${id}/shares`;
  const made = await console.browse('POST', path, { cookie, body: { expiresIn, hasLog } });
  assert.is(made.status, 201, made.body.toString());
  return String(made.json?.['url']);
}

async function tokenTo(console: Console, id: string, terms: Terms = {}): Promise<string> {
  return (await linkTo(console, id, terms)).split('#')[1] ?? '';
}

function read(console: Console, path: string, token: string): Promise<Answer> {
  return console.send('GET', path, { headers: { 'x-tabern-share': token } });
}

test('a link has its token in the fragment, and opens the facts of its session', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const link = await linkTo(console, id);
  const token = link.split('#')[1] ?? '';
  assert.is(link, `${console.url}/console/share#${token}`);
  assert.match(token, /^[\w-]{108}$/);
  const { status, json, body, headers } = await read(console, SHARED, token);
  assert.is(status, 200, body.toString());
  assert.is(headers['set-cookie'], undefined);
  assert.equal(Object.keys(must(json, 'JSON')).sort(), [
    ...['createdAt', 'expiresAt', 'hasLog', 'id', 'isReleased', 'linkExpiresAt'],
    ...['startedAt', 'status'],
  ]);
  assert.is(json?.['id'], id);
  assert.is(json?.['linkExpiresAt'], new Date(console.app.clock.now() + 3_600_000).toISOString());
});

test('no part of a shared session has its metadata, or a URL that drives it', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const token = await tokenTo(console, id);
  for (const path of PARTS) {
    const { status, body } = await read(console, path, token);
    assert.is(status, 200, `${path}: ${body}`);
    for (const word of [SECRET, 'signingKey', '/connect', 'connectUrl', 'contextId']) {
      assert.not(body.includes(word), `${path} has ${word}`);
    }
  }
});

test('a link without the log has no log, and everything else', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const token = await tokenTo(console, id, { hasLog: false });
  for (const path of PARTS) {
    const expected = path.endsWith('/logs') ? 404 : 200;
    assert.is((await read(console, path, token)).status, expected, path);
  }
  assert.is((await read(console, SHARED, token)).json?.['hasLog'], false);
});

test('a link opens its own session, whatever else a request names', async () => {
  await using console = await openConsole();
  const [one, other] = [await openShared(console), await openShared(console)];
  const token = await tokenTo(console, one.id);
  for (const name of ['id', 'sessionId', 'session_id']) {
    const { status } = await read(console, `${SHARED}?${name}=${other.id}`, token);
    assert.is(status, 400, name);
  }
  assert.is((await read(console, `${SHARED}/${other.id}`, token)).status, 404);
  assert.is((await read(console, SHARED, token)).json?.['id'], one.id);
  const { body } = await read(console, `${SHARED}/replays/0`, token);
  assert.not(body.includes(other.id));
});

test('no other operation accepts the token, in whatever place', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const token = await tokenTo(console, id);
  const places = [
    { 'x-tabern-share': token },
    { 'x-console-share': token },
    { 'x-svc-api-key': token },
    { authorization: `Bearer ${token}` },
    { cookie: `tabern=${token}`, 'sec-fetch-site': 'same-origin', origin: console.url },
  ];
  const operations = operationsOf(readContract()).filter(
    ({ template }) => !template.startsWith(SHARED) && template !== '/v1/contexts/{id}/content',
  );
  assert.ok(operations.length > 60);
  for (const { verb, template } of operations) {
    const path = template.replace(/\{\w+\}/g, id);
    for (const headers of places) {
      const method = verb.toUpperCase();
      const { status } = await console.send(method, path, { headers });
      assert.is(status, 401, `${method} ${path} ${Object.keys(headers)}`);
    }
  }
  for (const path of ['/console/api/v1/me', '/console/api/v1/changes', `/v1/sessions/${id}/logs`]) {
    for (const headers of places) {
      assert.is((await console.send('GET', path, { headers })).status, 401, path);
    }
  }
});

test('the routes of a shared session are read-only, and take nothing but a token', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const token = await tokenTo(console, id);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    for (const path of PARTS) {
      const headers = { 'x-tabern-share': token };
      assert.is((await console.send(method, path, { headers })).status, 405, `${method} ${path}`);
      const strange = { 'x-tabern-share': 'A'.repeat(108) };
      const refused = await console.send(method, path, { headers: strange });
      assert.is(refused.status, 403, `${method} ${path}`);
    }
  }
  const cookie = await console.logIn();
  for (const path of PARTS) {
    assert.is((await console.browse('GET', path, { cookie })).status, 403, path);
    const keyed = { 'x-svc-api-key': KEY };
    assert.is((await console.send('GET', path, { headers: keyed })).status, 403, path);
    assert.is((await console.send('GET', `${path}?token=${token}`)).status, 403, path);
  }
});

test('an altered, a cut and a missing token are refused with one sentence', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const token = await tokenTo(console, id);
  const swapped = token.slice(0, 20) + (token[20] === 'A' ? 'B' : 'A') + token.slice(21);
  for (const wrong of [swapped, token.slice(0, -1), `${token}A`, 'x', `${token}, ${token}`]) {
    for (const path of PARTS) {
      const answer = await read(console, path, wrong);
      assert.is(answer.status, 403, path);
      assert.is(messageOf(answer), 'This link is not valid. Copy all of it.');
    }
  }
});

test('a link ends with its time, and what it opened ends no later', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const { clock } = console.app;
  const token = await tokenTo(console, id);
  clock.advance(59 * 60_000);
  const { json } = await read(console, `${SHARED}/debug`, token);
  const view = new URL(String(json?.['debuggerUrl']));
  const playlist = String((await read(console, `${SHARED}/replays/0`, token)).body);
  const part = new URL(must(/URI="([^"]+)"/.exec(playlist)?.[1], 'a part'));
  const status = async ({ pathname, search }: URL) =>
    (await console.send('GET', pathname + search)).status;
  assert.is(await status(part), 200);
  clock.advance(60_000);
  for (const path of PARTS) {
    const answer = await read(console, path, token);
    assert.is(answer.status, 410, path);
    assert.is(messageOf(answer), 'This link has expired. Ask for another.');
  }
  assert.is(await status(part), 410, 'a part of the recording');
  view.pathname = '/live/status';
  assert.is(await status(view), 410, 'the live view');
});

test('a link ends at once with the key of the login that made it, and with no other', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const { key, id: keyId } = await console.key('default');
  const theirs = await tokenTo(console, id, { cookie: await console.logIn(key) });
  const mine = await tokenTo(console, id);
  const playlist = String((await read(console, `${SHARED}/replays/0`, theirs)).body);
  const part = new URL(must(/URI="([^"]+)"/.exec(playlist)?.[1], 'a part'));
  const { app } = console;
  await app.clients.operators.revokeApiKey({ id: keyId }, app.asOperator);
  for (const path of PARTS) {
    assert.is((await read(console, path, theirs)).status, 410, path);
    assert.is((await read(console, path, mine)).status, 200, path);
  }
  assert.is((await console.send('GET', part.pathname + part.search)).status, 410);
});

test('a link is for a session of the own project, and for a day at most', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const { app } = console;
  await app.clients.operators.createProject({ name: 'other', limits: undefined }, app.asOperator);
  const theirs = await console.logIn((await console.key('other')).key);
  const cookie = await console.logIn();
  const make = (by: string, body: unknown, session = id) =>
    console.browse('POST', `/console/api/v1/sessions/${session}/shares`, { cookie: by, body });
  assert.is((await make(theirs, { expiresIn: 60 })).status, 404);
  for (const expiresIn of [0, 86_401]) {
    const refused = await make(cookie, { expiresIn });
    assert.is(refused.status, 400);
    assert.match(messageOf(refused), /expiresIn/);
  }
  assert.is((await make(cookie, { expiresIn: 86_400 })).status, 201);
  assert.is((await make(cookie, { expiresIn: 60, rights: 'all' })).status, 400);
  const path = `/console/api/v1/sessions/${id}/shares`;
  const cross = { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' };
  const asked = { cookie, headers: cross, body: { expiresIn: 60 } };
  assert.is((await console.browse('POST', path, asked)).status, 403);
});

test('neither the token nor its live view opens a WebSocket that drives the session', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const token = await tokenTo(console, id);
  const { json } = await read(console, `${SHARED}/debug`, token);
  const view = new URL(String(json?.['debuggerUrl'])).searchParams.get('token') ?? '';
  for (const text of [token, view]) {
    for (const path of [
      ...['/connect', '/'].flatMap((base) => [
        `${base}?signingKey=${text}`,
        `${base}?apiKey=${text}`,
        `${base}?apiKey=${text}&sessionId=${id}`,
      ]),
      `/devtools/page/${id}?signingKey=${text}`,
    ]) {
      const headers = { ...UPGRADE, 'x-tabern-share': text };
      assert.is((await console.send('GET', path, { headers })).status, 401, path);
    }
    const discovery = `/json/version?signingKey=${text}`;
    assert.is((await console.send('GET', discovery)).status, 401);
  }
  const asView = await console.send('GET', `/view?token=${token}`, { headers: UPGRADE });
  assert.is(asView.status, 401, 'the token of a link is no live view');
});

test('the live view of a link takes no input, and core refuses the link elsewhere', async () => {
  await using console = await openConsole();
  const { id } = await openShared(console);
  const { app } = console;
  await app.clients.runners.registerRunner(
    { runnerId: 'runner', instanceId: 'first', address: 'unix:/x' },
    app.asRunner,
  );
  const token = await tokenTo(console, id);
  const { json } = await read(console, `${SHARED}/debug`, token);
  const value = new URL(String(json?.['debuggerUrl'])).searchParams.get('token') ?? '';
  const wanted = { credential: { $case: 'viewToken', value } as const };
  const found = await app.clients.sessions.locateSession(wanted, app.asGateway);
  assert.is(found.isReadOnly, true);
  const asHolder = { metadata: { 'x-console-share': token } };
  const refused: (() => Promise<unknown>)[] = [
    () => app.clients.sessions.getSession({ id }, asHolder),
    () =>
      app.clients.consoleShares.createSessionShare({ id, expiresIn: 60, hasLog: true }, asHolder),
    () => app.clients.operators.listAllProjects({}, asHolder),
    () => app.clients.sessions.locateSession(wanted, asHolder),
    () => app.clients.runners.registerRunner({ runnerId: 'x', instanceId: 'y' }, asHolder),
    () => app.clients.blobs.readBlob({ blobId: id }, asHolder)[Symbol.asyncIterator]().next(),
  ];
  for (const [at, call] of refused.entries()) {
    const { reason } = await faultOf(call());
    assert.ok(['API_KEY_MISSING', 'TOKEN_REQUIRED'].includes(reason), `${at}: ${reason}`);
  }
});

test('TABERN_CONSOLE=off removes the links', async () => {
  await using console = await openConsole({ env: { TABERN_CONSOLE: 'off' } });
  const { id } = await openShared(console);
  const { app } = console;
  const wanted = { id, expiresIn: 60, hasLog: true };
  const made = await app.clients.consoleShares.createSessionShare(wanted, app.asProject);
  const token = made.url.split('#')[1] ?? '';
  for (const path of PARTS) assert.is((await read(console, path, token)).status, 401, path);
});

test.run();
