/** The operator login over HTTP: what it reaches, and every other credential on its routes. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { until } from '../../support/poll.ts';
import { type Console, cookieOf, KEY, messageOf, openConsole } from './console.ts';

const test = suite('gateway/console/operator');

const ME = '/console/api/v1/me';
const AUDIT = '/console/api/v1/audit';
const PROJECTS = '/console/api/v1/operator/projects';
const MISSING = '01a1fce4-ed84-7600-895f-0cf6ab39edc7';
/** Every route of the operator. */
const ROUTES: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['GET', PROJECTS],
  ['POST', PROJECTS, { name: 'new' }],
  ['PATCH', `${PROJECTS}/default`, { limits: { sessions: 1 } }],
  ['POST', `${PROJECTS}/default/keys`, { name: 'new' }],
  ['GET', '/console/api/v1/operator/keys'],
  ['DELETE', '/console/api/v1/operator/keys/k3v9x0ab'],
  ...['sessions', 'runners', 'queues', 'notices', 'diagnosis', 'backup'].map(
    (list) => ['GET', `/console/api/v1/operator/${list}`] as const,
  ),
];

async function operatorCode({ app }: Console): Promise<string> {
  return (await app.clients.operators.createOperatorCode({}, app.asOperator)).code;
}

async function logIn(console: Console): Promise<string> {
  const code = await operatorCode(console);
  return cookieOf(await console.browse('POST', '/console/login', { body: { code } }));
}

async function projectIds({ app }: Console): Promise<{ own: string; other: string }> {
  const { operators } = app.clients;
  await operators.createProject({ name: 'other', limits: {} }, app.asOperator);
  const { projects } = await operators.listAllProjects({}, app.asOperator);
  const [own, other] = projects.map(({ project }) => must(project, 'a project').id);
  return { own: must(own, 'own'), other: must(other, 'other') };
}

test('the code of a link logs in once, as the operator, with the same cookie', async () => {
  await using console = await openConsole();
  const code = await operatorCode(console);
  const made = await console.browse('POST', '/console/login', { body: { code } });
  assert.is(made.status, 200);
  assert.equal(made.json?.['projectId'], null);
  assert.match(String(made.headers['set-cookie']), /Max-Age=43200; HttpOnly; SameSite=Strict/);
  const { json } = await console.browse('GET', ME, { cookie: cookieOf(made) });
  const { projectId, projectName, login } = json as Record<string, { kind: string } | null>;
  assert.equal([projectId, projectName, login?.kind], [null, null, 'operator']);
  const again = await console.browse('POST', '/console/login', { body: { code } });
  assert.is(again.status, 401);
  const late = await operatorCode(console);
  console.app.clock.advance(60_000);
  assert.is((await console.browse('POST', '/console/login', { body: { code: late } })).status, 401);
});

test('the operator lists, sets limits, and makes and revokes keys', async () => {
  await using console = await openConsole();
  const cookie = await logIn(console);
  const send = (method: string, path: string, body?: object) =>
    console.browse(method, path, { cookie, body });
  const made = await send('POST', PROJECTS, { name: 'shop', limits: { sessions: 2 } });
  assert.is(made.status, 200, made.body.toString());
  const set = await send('PATCH', `${PROJECTS}/shop`, { limits: { sessions: 7 } });
  assert.is((set.json?.['limits'] as { sessions: number } | undefined)?.sessions, 7);
  const bad = await send('PATCH', `${PROJECTS}/shop`, { limits: { sessions: 0 } });
  assert.equal([bad.status, messageOf(bad)], [400, '`sessions` must be 1 to 10000.']);
  const unknown = await send('PATCH', `${PROJECTS}/none`, { limits: {} });
  assert.is(unknown.status, 404);
  const key = await send('POST', `${PROJECTS}/shop/keys`, { name: 'ci' });
  const { apiKey, key: text } = key.json as { apiKey: { id: string }; key: string };
  assert.is((await console.send('GET', '/v1/projects', keyed(text))).status, 200);
  const revoked = await send('DELETE', `/console/api/v1/operator/keys/${apiKey.id}`);
  assert.is(revoked.status, 200, revoked.body.toString());
  assert.is((await console.send('GET', '/v1/projects', keyed(text))).status, 401);
  const { json } = await send('GET', AUDIT);
  const events = json?.['events'] as { operation: string; outcome: string; address: string }[];
  assert.equal(
    events.map(({ operation, outcome, address }) => [operation, outcome, address]),
    [
      ['revokeApiKey', 'OK', '127.0.0.1'],
      ['createApiKey', 'OK', '127.0.0.1'],
      ['setProjectLimits', 'RESOURCE_NOT_FOUND', '127.0.0.1'],
      ['setProjectLimits', 'INVALID_FIELD', '127.0.0.1'],
      ['setProjectLimits', 'OK', '127.0.0.1'],
      ['createProject', 'OK', '127.0.0.1'],
    ],
  );
});

function keyed(key: string) {
  return { headers: { 'x-svc-api-key': key } };
}

test('every other credential is refused on each route of the operator', async () => {
  await using console = await openConsole();
  const { app } = console;
  const token = must(app.asOperator.metadata?.['authorization'], 'a token');
  const cookies = [
    await console.logIn(),
    cookieOf(
      await console.browse('POST', '/console/login', { body: { code: await console.code() } }),
    ),
  ];
  const { own } = await projectIds(console);
  const operator = await logIn(console);
  for (const [method, path, body] of ROUTES) {
    const what = `${method} ${path}`;
    assert.is((await console.send(method, path, { body })).status, 401, what);
    assert.is((await console.send(method, path, { ...keyed(KEY), body })).status, 403, what);
    for (const given of [token, token.replace('Bearer ', 'bearer ')]) {
      const headers = { authorization: given };
      assert.is((await console.send(method, path, { headers, body })).status, 401, what);
    }
    for (const cookie of cookies) {
      const refused = await console.browse(method, path, { cookie, body });
      assert.is(refused.status, 403, what);
      assert.is(
        messageOf(refused),
        "This operation is the operator's and needs their token or login.",
      );
    }
    const named = `/console/api/v1/as/${own}${path}`;
    assert.is((await console.browse(method, named, { cookie: operator, body })).status, 403, what);
  }
  const { projects } = await app.clients.operators.listAllProjects({}, app.asOperator);
  assert.equal(
    projects.map(({ project, limits }) => [project?.name, limits?.sessions]),
    [
      ['default', projects[1]?.limits?.sessions],
      ['other', projects[1]?.limits?.sessions],
    ],
  );
});

test('a request of a foreign page is refused, for a project and for the operator', async () => {
  await using console = await openConsole();
  const cookie = await logIn(console);
  const { other } = await projectIds(console);
  const paths = [...ROUTES, ['GET', `/console/api/v1/as/${other}/v1/projects`] as const];
  for (const [method, path, body] of paths) {
    for (const headers of [
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
      { origin: 'https://evil.example' },
    ]) {
      const { status } = await console.browse(method, path, { cookie, body, headers });
      assert.is(status, 403, `${method} ${path} ${JSON.stringify(headers)}`);
    }
    const bare = await console.send(method, path, { headers: { cookie }, body });
    assert.is(bare.status, 403, `${method} ${path} without the headers of a browser`);
  }
  const { json } = await console.browse('GET', AUDIT, { cookie });
  assert.equal(json?.['events'], [], 'no call reached core');
});

test('the operator names a project, and each route acts for it', async () => {
  await using console = await openConsole();
  const cookie = await logIn(console);
  const { own, other } = await projectIds(console);
  const as = (project: string, path: string) => `/console/api/v1/as/${project}${path}`;
  const made = await console.browse('POST', as(other, '/v1/contexts'), {
    cookie,
    body: { name: 'x' },
  });
  assert.is(made.status, 201, made.body.toString());
  const context = `/v1/contexts/${made.json?.['id']}`;
  assert.is((await console.browse('GET', as(other, context), { cookie })).status, 200);
  assert.is((await console.browse('GET', as(own, context), { cookie })).status, 404);
  const overview = as(other, '/console/api/v1/overview');
  assert.is((await console.browse('GET', overview, { cookie })).status, 200);
  const query = as(other, '/console/api/v1/sessions?status=NONE');
  assert.is((await console.browse('GET', query, { cookie })).status, 400, 'the query is kept');
  assert.is((await console.browse('GET', as(MISSING, '/v1/projects'), { cookie })).status, 404);
  const plain = await console.browse('GET', '/v1/projects', { cookie });
  assert.is(plain.status, 403, 'without a name it is no project');
  assert.match(messageOf(plain), /An operator login reads a project below/);
  for (const path of [
    ...[as('default', '/v1/projects'), as(other, '/console/login'), as(other, '/')],
    ...[as(other, '/healthz'), as(other, as(own, '/v1/projects')), as(other, '')],
  ]) {
    assert.is((await console.browse('GET', path, { cookie })).status, 404, path);
  }
  const { json } = await console.browse('GET', as(other, AUDIT), { cookie });
  const events = json?.['events'] as { operation: string; login: string }[];
  const of = events.map(({ operation, login }) => `${login} ${operation}`);
  assert.equal(of, ['operator createContext']);
});

test('no other credential names a project, nor its own', async () => {
  await using console = await openConsole();
  const cookie = await console.logIn();
  const { own, other } = await projectIds(console);
  for (const project of [own, other, MISSING]) {
    for (const path of ['/v1/projects', '/console/api/v1/sessions', ME, AUDIT]) {
      const named = `/console/api/v1/as/${project}${path}`;
      for (const sent of [
        await console.browse('GET', named, { cookie }),
        await console.send('GET', named, keyed(KEY)),
      ]) {
        assert.equal(
          [sent.status, messageOf(sent)],
          [403, 'Only an operator login may name a project.'],
          named,
        );
      }
      assert.is((await console.send('GET', named)).status, 401);
      assert.is((await console.send('GET', named, keyed('x'))).status, 401);
    }
  }
  const headers = { 'x-console-project': other };
  const { json } = await console.browse('GET', ME, { cookie, headers });
  assert.is(json?.['projectId'], own, 'a header of that name has no meaning');
  const listed = await console.send('GET', '/v1/projects', {
    headers: { ...headers, ...keyed(KEY).headers },
  });
  assert.is((listed.json as unknown as { id: string }[])[0]?.id, own);
});

test('a key in a header counts alone, beside the cookie of the operator', async () => {
  await using console = await openConsole();
  const cookie = await logIn(console);
  const { headers } = keyed(KEY);
  assert.is((await console.browse('GET', PROJECTS, { cookie, headers })).status, 403);
  assert.is((await console.browse('GET', '/v1/projects', { cookie, headers })).status, 200);
});

test('a logout and 12 idle hours end the login', async () => {
  await using console = await openConsole();
  const [left, idle] = [await logIn(console), await logIn(console)];
  await console.browse('POST', '/console/logout', { cookie: left });
  const { other } = await projectIds(console);
  for (const path of [PROJECTS, ME, `/console/api/v1/as/${other}/v1/projects`]) {
    assert.is((await console.browse('GET', path, { cookie: left })).status, 401, path);
    assert.is((await console.browse('GET', path, { cookie: idle })).status, 200, path);
  }
  console.app.clock.advance(12 * 3_600_000);
  assert.is((await console.browse('GET', PROJECTS, { cookie: idle })).status, 401);
});

test('a malformed request of the operator names its field, and 401 comes first', async () => {
  await using console = await openConsole();
  const cookie = await logIn(console);
  const path = `${PROJECTS}?x=1`;
  const refused = await console.browse('GET', path, { cookie });
  assert.equal([refused.status, messageOf(refused)], [400, '`x` is not a known query parameter.']);
  await console.browse('POST', '/console/logout', { cookie });
  assert.is((await console.browse('GET', path, { cookie })).status, 401);
});

test('TABERN_CONSOLE=off removes the routes of the operator', async () => {
  await using console = await openConsole({ env: { TABERN_CONSOLE: 'off' } });
  const { own } = await projectIds(console);
  for (const [method, path, body] of ROUTES) {
    assert.is((await console.send(method, path, { ...keyed(KEY), body })).status, 404, path);
  }
  const named = `/console/api/v1/as/${own}/v1/projects`;
  assert.is((await console.send('GET', named, keyed(KEY))).status, 404);
});

test('a backup whose bytes are not read ends with its request', async () => {
  await using console = await openConsole();
  const cookie = await logIn(console);
  const take = (method: string) =>
    console.browse(method, '/console/api/v1/operator/backup', { cookie });
  assert.is((await take('HEAD')).status, 200);
  const next = await until(async () => {
    const answer = await take('GET');
    return answer.status === 200 && answer;
  });
  assert.is(next.headers['content-type'], 'application/x-tar');
});

test.run();
