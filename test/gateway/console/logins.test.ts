/** Logins of the console: by key and by code, their ends, their cookie, and what it may do. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { type Console, cookieOf, KEY, messageOf, openConsole } from './console.ts';

const test = suite('gateway/console/logins');

const ME = '/console/api/v1/me';
const HOUR_MS = 3_600_000;

type Me = {
  projectId: string;
  projectName: string;
  login: { kind: string; keyId: string; expiresAt: string };
  service: { baseUrl: string };
};

test('a key logs in, and the cookie is its project everywhere', async () => {
  await using console = await openConsole();
  const made = await console.browse('POST', '/console/login', { body: { apiKey: KEY } });
  assert.is(made.status, 200);
  assert.not(made.body.includes(KEY));
  const cookie = cookieOf(made);
  const { status, json } = await console.browse('GET', ME, { cookie });
  assert.is(status, 200);
  const { projectId, projectName, login, service } = json as Me;
  const [project] = (await console.app.clients.projects.listProjects({}, console.app.asProject))
    .projects;
  assert.equal([projectId, projectName], [must(project, 'one').id, 'default']);
  assert.is(login.kind, 'key');
  assert.match(login.keyId, /^[a-z0-9]{8}$/);
  const endsAt = new Date(console.app.clock.now() + 12 * HOUR_MS).toISOString();
  assert.is(login.expiresAt, endsAt);
  assert.is(service.baseUrl, console.url);
  assert.is((await console.browse('GET', '/console/api/v1/sessions', { cookie })).status, 200);
  const created = await console.browse('POST', '/v1/contexts', { cookie, body: { name: 'x' } });
  assert.is(created.status, 201, created.body.toString());
});

test('a wrong key, no key and another credential are refused, and set no cookie', async () => {
  await using console = await openConsole();
  const refused: [unknown, number][] = [
    [{ apiKey: `${KEY}x` }, 401],
    [{ apiKey: '' }, 401],
    [{ apiKey: 'x'.repeat(5_000) }, 401],
    [{ code: 'A'.repeat(43) }, 401],
    [{ apiKey: must(console.app.asGateway.metadata, 'token')['authorization']?.slice(7) }, 401],
    [{}, 400],
    [[], 400],
    [{ apiKey: 1 }, 400],
    [{ apiKey: KEY, code: 'x' }, 400],
    [{ key: KEY }, 400],
  ];
  for (const [at, [body, status]] of refused.entries()) {
    const from = `127.0.1.${at + 1}`; // a rate of its own
    const answer = await console.browse('POST', '/console/login', { body, from });
    assert.is(answer.status, status, JSON.stringify(body).slice(0, 60));
    assert.is(answer.headers['set-cookie'], undefined);
  }
});

test('a login reads 16 KiB, since its sender has no key yet', async () => {
  await using console = await openConsole();
  for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
    const body = { apiKey: 'x'.repeat(17_000) };
    const answer = await console.browse('POST', '/console/login', { headers, body });
    assert.is(answer.status, 413);
    assert.is(messageOf(answer), 'The body must not exceed 16 KiB.');
  }
  const body = { apiKey: 'x'.repeat(16_000) };
  assert.is((await console.browse('POST', '/console/login', { body })).status, 401);
});

test('an unknown, a malformed and a doubled cookie are none', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const refused = ['tabern=', `tabern=${'A'.repeat(43)}`, `${cookie}x`, `${cookie}; ${cookie}`];
  for (const given of refused) {
    assert.is((await console.browse('GET', ME, { cookie: given })).status, 401, given);
  }
  assert.is((await console.browse('GET', ME, { cookie: `a=b; ${cookie}; c` })).status, 200);
  const value = cookie.slice('tabern='.length);
  const headers = { 'x-svc-api-key': value };
  assert.is((await console.browse('GET', ME, { headers })).status, 401, 'it is no API key');
});

test('a revoked key ends its logins at once, and no others', async () => {
  await using console = await openConsole();
  const { key, id } = await console.key('default');
  const [cookie, other] = [await console.logIn(key), await console.logIn()];
  assert.is((await console.browse('GET', ME, { cookie })).status, 200);
  const { app } = console;
  await app.clients.operators.revokeApiKey({ id }, app.asOperator);
  for (const path of [ME, '/v1/sessions', '/console/api/v1/sessions']) {
    assert.is((await console.browse('GET', path, { cookie })).status, 401, path);
  }
  assert.is((await console.browse('GET', ME, { cookie: other })).status, 200);
});

test('a login ends 12 hours after its last use', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const { clock } = console.app;
  for (let i = 0; i < 3; i += 1) {
    clock.advance(11 * HOUR_MS);
    assert.is((await console.browse('GET', '/v1/projects', { cookie })).status, 200);
  }
  clock.advance(12 * HOUR_MS);
  assert.is((await console.browse('GET', ME, { cookie })).status, 401);
});

test('a logout ends the login and removes the cookie; a second one is no error', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  for (let i = 0; i < 2; i += 1) {
    const { status, headers } = await console.browse('POST', '/console/logout', { cookie });
    assert.is(status, 204);
    assert.match(String(headers['set-cookie']), /^tabern=; Path=\/; Max-Age=0; HttpOnly/);
    assert.is((await console.browse('GET', ME, { cookie })).status, 401);
  }
});

test('another login of the browser ends its earlier one, a refused login does not', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const again = (apiKey: string) =>
    console.browse('POST', '/console/login', { cookie, body: { apiKey } });
  assert.is((await again(`${KEY}x`)).status, 401);
  assert.is(await statusOf(console, ME, cookie), 200);
  const next = cookieOf(await again(KEY));
  assert.is(await statusOf(console, ME, cookie), 401);
  assert.is(await statusOf(console, ME, next), 200);
});

test('a code logs in once, and within 60 s', async () => {
  await using console = await openConsole();
  const logIn = (code: string) => console.browse('POST', '/console/login', { body: { code } });
  const [code, late] = [await console.code(), await console.code()];
  const made = await logIn(code);
  assert.is(made.status, 200);
  const { json } = await console.browse('GET', ME, { cookie: cookieOf(made) });
  const { login } = json as Me;
  assert.equal([login.kind, login.keyId], ['code', null]);
  const again = await logIn(code);
  assert.is(again.status, 401);
  assert.match(messageOf(again), /used already.*tabern console/);
  console.app.clock.advance(60_000);
  assert.is((await logIn(late)).status, 401);
});

test('only a page of the same origin may log in, log out or use the cookie', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const foreign: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { origin: console.url.replace('http:', 'https:') },
    { origin: console.url.replace(/\d+$/, '1') },
  ];
  const requests: [string, string, unknown][] = [
    ['POST', '/console/login', { apiKey: KEY }],
    ['POST', '/console/logout', undefined],
    ['POST', '/v1/contexts', { name: 'cross' }],
    ['GET', '/v1/projects', undefined],
    ['GET', ME, undefined],
  ];
  for (const [method, path, body] of requests) {
    for (const headers of foreign) {
      const answer = await console.browse(method, path, { cookie, headers, body });
      assert.is(answer.status, 403, `${method} ${path} ${JSON.stringify(headers)}`);
      assert.is(answer.headers['set-cookie'], undefined);
    }
    const bare = await console.send(method, path, { headers: { cookie }, body });
    assert.is(bare.status, 403, `${method} ${path} without headers of a browser`);
  }
  const headers = { cookie, 'sec-fetch-site': 'same-origin' };
  const noOrigin = await console.send('POST', '/v1/contexts', { headers, body: { name: 'cross' } });
  assert.is(noOrigin.status, 403);
  const { json } = await console.browse('GET', '/v1/contexts', { cookie });
  assert.equal(json?.['data'], [], 'none was created');
  assert.is((await console.browse('GET', ME, { cookie })).status, 200, 'still logged in');
});

test('the cookie drives no session: WebSockets and discovery need a key', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const upgrade = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  };
  const id = '01a20b7f-ef50-7100-8e2d-500df8a298ff';
  for (const path of ['/connect', `/connect?sessionId=${id}`, `/?sessionId=${id}`]) {
    const answer = await console.browse('GET', path, { cookie, headers: upgrade });
    assert.is(answer.status, 401, path);
  }
  assert.is(await statusOf(console, `/json/version?sessionId=${id}`, cookie), 401);
});

test('a key in a header counts alone: neither the cookie nor its checks matter', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const keyed = { cookie, 'x-svc-api-key': KEY };
  const { status, headers, json } = await console.send('GET', ME, { headers: keyed });
  assert.is(status, 200);
  assert.is(json?.['login'], null);
  assert.is(headers['set-cookie'], undefined);
  const wrong = { 'x-svc-api-key': `${KEY}x` };
  assert.is((await console.browse('GET', ME, { cookie, headers: wrong })).status, 401);
  const basic = { authorization: 'Basic dXNlcjpwYXNz' }; // of a proxy in front
  assert.is((await console.browse('GET', ME, { cookie, headers: basic })).status, 200);
});

const HTTP_COOKIE = /^tabern=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/;
const HTTPS_COOKIE =
  /^__Host-tabern=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/;

test('the cookie is plain for http, and __Host- and Secure for https', async () => {
  await using console = await openConsole();
  const made = await console.browse('POST', '/console/login', { body: { apiKey: KEY } });
  assert.match(String(made.headers['set-cookie']), HTTP_COOKIE);
  const renewed = await console.browse('GET', ME, { cookie: cookieOf(made) });
  assert.match(String(renewed.headers['set-cookie']), HTTP_COOKIE);

  const env = { TABERN_PUBLIC_URL: 'https://tabern.example' };
  await using secure = await openConsole({ env });
  const headers = { origin: 'https://tabern.example' };
  const body = { apiKey: KEY };
  const over = await secure.browse('POST', '/console/login', { headers, body });
  assert.match(String(over.headers['set-cookie']), HTTPS_COOKIE);
  const cookie = cookieOf(over);
  assert.is((await secure.browse('GET', ME, { cookie })).status, 200);
  const plain = cookie.replace('__Host-', '');
  assert.is((await secure.browse('GET', ME, { cookie: plain })).status, 401);
});

test('the eleventh attempt of an address in a minute is a 429, of that address alone', async () => {
  await using console = await openConsole();
  const attempt = (apiKey: string, from?: string) =>
    console.browse('POST', '/console/login', { body: { apiKey }, from });
  for (let i = 0; i < 10; i += 1) assert.is((await attempt(`${KEY}x`)).status, 401);
  const refused = await attempt(KEY);
  assert.is(refused.status, 429);
  assert.is(refused.headers['retry-after'], '60');
  assert.is((await attempt(KEY, '127.0.0.2')).status, 200);
  console.app.clock.advance(60_000);
  assert.is((await attempt(KEY)).status, 200);
});

test('a cookie of another project sees nothing of the first', async () => {
  await using console = await openConsole();
  const { app } = console;
  await app.clients.operators.createProject({ name: 'other', limits: undefined }, app.asOperator);
  const mine = await console.logIn();
  const theirs = await console.logIn((await console.key('other')).key);
  const { json } = await console.browse('POST', '/v1/contexts', { cookie: mine, body: {} });
  const id = String(json?.['id']);
  assert.is(await statusOf(console, `/v1/contexts/${id}`, mine), 200);
  assert.is(await statusOf(console, `/v1/contexts/${id}`, theirs), 404);
  const me = [mine, theirs].map(async (cookie) => console.browse('GET', ME, { cookie }));
  const [one, two] = (await Promise.all(me)).map((answer) => answer.json?.['projectId']);
  assert.is.not(one, two);
  assert.is(await statusOf(console, `/v1/projects/${one}`, theirs), 404);
});

test('a project keeps its thousand newest logins', async () => {
  await using console = await openConsole();
  const { clients, asGateway } = console.app;
  const first = await console.logIn();
  for (let i = 0; i < 1_000; i += 1) {
    const credential = { $case: 'apiKey', value: KEY } as const;
    const wanted = { credential, client: `10.0.${i % 200}.${Math.floor(i / 200)}` };
    await clients.consoleLogins.createConsoleLogin(wanted, asGateway);
  }
  assert.is((await console.browse('GET', ME, { cookie: first })).status, 401);
});

test('only gateways manage logins, and only operators create codes', async () => {
  await using console = await openConsole();
  const { clients, asProject, asGateway } = console.app;
  const text = 'A'.repeat(43);
  const refused = [
    clients.consoleLogins.getConsoleLogin({ text, use: false }, asProject),
    clients.consoleLogins.deleteConsoleLogin({ text }, asProject),
    clients.operators.createConsoleCode({ project: 'default' }, asProject),
    clients.operators.createConsoleCode({ project: 'default' }, asGateway),
  ];
  const outcomes = await Promise.allSettled(refused);
  const reasons = outcomes.map((one) => one.status === 'rejected' && one.reason.reason);
  assert.equal(reasons, Array(4).fill('TOKEN_REQUIRED'));
});

test('TABERN_CONSOLE=off removes the routes, and the cookie counts no more', async () => {
  const files = { 'index.html': '<p>console</p>' };
  await using console = await openConsole({ env: { TABERN_CONSOLE: 'off' }, files });
  assert.not(console.hasConsole);
  const paths = ['/console', '/console/login', ME, '/console/api/v1/sessions', '/'];
  for (const path of paths) {
    const headers = { 'x-svc-api-key': KEY };
    const { status } = await console.send('GET', path, { headers });
    assert.is(status, 404, path);
  }
  const body = { apiKey: KEY };
  assert.is((await console.browse('POST', '/console/login', { body })).status, 404);
  const { clients, asGateway } = console.app;
  const credential = { $case: 'apiKey', value: KEY } as const;
  const made = await clients.consoleLogins.createConsoleLogin(
    { credential, client: 'x' },
    asGateway,
  );
  const cookie = `tabern=${made.text}`;
  assert.is((await console.browse('GET', '/v1/projects', { cookie })).status, 401);
});

test.run();

async function statusOf(console: Console, path: string, cookie: string): Promise<number> {
  return (await console.browse('GET', path, { cookie })).status;
}
