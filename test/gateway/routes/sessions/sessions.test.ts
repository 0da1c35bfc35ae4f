/** Sessions over REST, on a whole core in the gateway's process and over gRPC. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import { must } from '../../../../proto/common/must.ts';
import { KEY } from '../../../core/boot.ts';
import { until } from '../../../support/poll.ts';
import { type Answer, ask, json } from '../../sessions/runner.ts';
import { openUploads } from '../files/contexts.ts';

const test = suite('gateway/routes/sessions/sessions');

type Shown = { id: string; status: string; signingKey?: string; connectUrl?: string };

/** A gateway, and a runner that starts the requested sessions. */
async function openRest(isRemote: boolean, concurrency = '25') {
  const app = await openUploads({}, isRemote, { TABERN_CONCURRENCY: concurrency });
  const send = (method: string, path: string, body?: unknown): Promise<Answer> => {
    const sent = body === undefined ? { headers: {} } : json(body);
    const headers = { 'x-svc-api-key': KEY, ...sent.headers };
    return ask(app.gateway.url, method, `/v1/sessions${path}`, { ...sent, headers });
  };
  const take = async () => must((await app.lease('SESSION', 25_000))[0], 'a session').leaseId;
  const run = async (body?: unknown) => {
    const creating = send('POST', '', body);
    const leaseId = await take();
    await app.clients.runners.startSession({ leaseId, startMs: 0 }, app.asRunner);
    const answer = await creating;
    return { leaseId, answer, shown: answer.json as Shown };
  };
  return { ...app, send, take, run };
}

for (const isRemote of [false, true]) {
  const where = isRemote ? 'over gRPC' : 'in one process';

  test(`${where}: created with an empty body, read, listed, released`, async () => {
    await using app = await openRest(isRemote);
    const { answer, shown, leaseId } = await app.run();
    assert.is(answer.status, 201);
    const { host } = new URL(app.gateway.url);
    const { id, signingKey } = shown;
    assert.is(shown.connectUrl, `ws://${host}/connect?signingKey=${signingKey}`);
    assert.equal(Object.keys(shown).sort(), [
      ...['connectUrl', 'createdAt', 'expiresAt', 'id', 'keepAlive', 'labels', 'projectId'],
      ...[
        'proxyBytes',
        'region',
        'seleniumRemoteUrl',
        'signingKey',
        'startedAt',
        'status',
        'updatedAt',
      ],
    ]);
    assert.equal((await app.send('GET', `/${id}`)).json, shown);
    const [listed] = (await app.send('GET', '?status=RUNNING')).json as Shown[];
    assert.equal([listed?.id, listed?.connectUrl], [id, undefined]);
    const released = await app.send('POST', `/${id}`, { status: 'REQUEST_RELEASE' });
    assert.equal([released.status, (released.json as Shown).status], [200, 'RUNNING']);
    const end = { leaseId, end: 'COMPLETED', reason: '', proxyBytes: 0 } as const;
    await app.clients.runners.completeSession(end, app.asRunner);
    const ended = (await app.send('GET', `/${id}`)).json as Shown;
    assert.equal([ended.status, ended.connectUrl], ['COMPLETED', undefined]);
    const deleted = await app.send('DELETE', `/${id}`);
    assert.equal([deleted.status, deleted.text], [204, '']);
  });

  test(`${where}: above the limit, 429 has the limit, the count and a retry-after`, async () => {
    await using app = await openRest(isRemote, '1');
    const { shown } = await app.run({ keepAlive: true });
    const { status, headers, json: body } = await app.send('POST', '', {});
    assert.is(status, 429);
    assert.match(Reflect.get(body as object, 'message'), '(limit 1, currently 1)');
    assert.is(Reflect.get(body as object, 'error'), 'Too Many Requests');
    assert.equal(
      ['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`]),
      ['1', '0', '5'],
    );
    assert.is(headers['x-should-retry'], 'true');
    assert.ok(Number(headers['retry-after']) <= 60);
    await app.send('DELETE', `/${shown.id}`);
    assert.is((await app.run()).answer.status, 201);
  });
}

const WRONG: [unknown, string][] = [
  [{ timeout: '60' }, '`timeout` must be a whole number.'],
  [{ timeout: 60.5 }, '`timeout` must be a whole number.'],
  [{ timeout: 30 }, '`timeout` must be >= 60.'],
  [{ timeout: 3_600_000 }, '`timeout` must be <= 21600.'],
  [{ keepAlive: 'yes' }, '`keepAlive` must be a boolean.'],
  [{ region: 5 }, '`region` must be a string.'],
  [{ userMetadata: 'a' }, '`userMetadata` must be an object.'],
  [{ browserSettings: [] }, '`browserSettings` must be an object.'],
  [
    { browserSettings: { viewport: { width: '1' } } },
    '`browserSettings.viewport.width` must be a whole number.',
  ],
  [
    { browserSettings: { allowedDomains: 'a' } },
    '`browserSettings.allowedDomains` must be an array.',
  ],
  [
    { browserSettings: { context: {} } },
    '`browserSettings.context.id` must NOT have fewer than 1 characters.',
  ],
  [
    { browserSettings: { network: { denied: ['a'] } } },
    '`browserSettings.network.denied` is not a known field.',
  ],
  [{ proxies: {} }, '`proxies` must be boolean or array.'],
  [[], 'Body must be a JSON object.'],
];

test('a wrong field is a 400 that names it; an unknown one is ignored', async () => {
  await using app = await openRest(false);
  for (const [body, message] of WRONG) {
    const answer = await app.send('POST', '', body);
    assert.equal(answer.json, { statusCode: 400, error: 'Bad Request', message });
  }
  const { answer } = await app.run({ unpublished: 1, browserSettings: { size: 'small' } });
  assert.is(answer.status, 201);
});

test('a wrong query is a 400, and a query without a match an empty list', async () => {
  await using app = await openRest(false);
  await app.run({ userMetadata: { a: { b: 'c' } } });
  const list = async (query: Record<string, string>) =>
    await app.send('GET', `?${new URLSearchParams(query)}`);
  assert.is(((await list({ q: "user_metadata['a']['b']:'c'" })).json as Shown[]).length, 1);
  assert.equal((await list({ q: "user_metadata['a']:'c'" })).json, []);
  for (const query of [{ q: 'a:b' }, { q: '' }, { status: 'running' }, { page: '1' }]) {
    const { status, json: body } = await list(query as never);
    assert.is(status, 400);
    const [name] = Object.keys(query);
    assert.match(Reflect.get(body as object, 'message'), `\`${name}\``);
  }
});

test('a session that is not there is a 404, a malformed id a 400', async () => {
  await using app = await openRest(false);
  const release = { status: 'REQUEST_RELEASE' };
  for (const [id, status] of [
    [newId(), 404],
    ['x', 400],
  ] as const) {
    assert.is((await app.send('GET', `/${id}`)).status, status);
    assert.is((await app.send('POST', `/${id}`, release)).status, status);
    assert.is((await app.send('DELETE', `/${id}`)).status, status);
  }
  const { shown } = await app.run();
  for (const body of [undefined, {}, { status: 'COMPLETED' }]) {
    const answer = await app.send('POST', `/${shown.id}`, body);
    assert.is(Reflect.get(answer.json as object, 'message'), '`status` must be REQUEST_RELEASE.');
  }
});

test('a client that disconnects before the response leaves no session', async () => {
  await using app = await openRest(false, '1');
  const leaving = new AbortController();
  const init = { method: 'POST', headers: { 'x-svc-api-key': KEY }, signal: leaving.signal };
  const left = fetch(`${app.gateway.url}/v1/sessions`, init).catch(() => undefined);
  await app.take();
  leaving.abort();
  await left;
  const statusOf = async () => ((await app.send('GET', '')).json as Shown[])[0]?.status;
  await until(async () => (await statusOf()) === 'COMPLETED');
  assert.is((await app.run()).answer.status, 201);
});

test.run();
