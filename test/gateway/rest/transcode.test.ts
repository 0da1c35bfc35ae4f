import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../../proto/rpc/errors.ts';
import { type INVOCATION, openRecording } from '../routes/sessions/recording.ts';
import { ask, json, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/rest/transcode');

test('a body becomes the request and the annotated status the answer', async () => {
  const { gateway, seen } = await openRecording();
  await using _ = gateway;
  const answer = await ask(gateway.url, 'POST', '/v1/contexts', json({ name: ' Ä ' }));
  assert.is(answer.status, 201);
  assert.is(answer.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(answer.json, {
    id: 'c',
    publicKey: 'k',
    cipherAlgorithm: 'AES-256-CBC',
    initializationVectorSize: 16,
    uploadUrl: `${gateway.url}/v1/contexts/c/content?x=y`,
  });
  assert.is(seen.contexts[0]?.name, ' Ä ');
  assert.is(seen.contexts[0]?.projectId, undefined);
});

test('an empty JSON body is an empty object, on POST, PUT and DELETE', async () => {
  const { gateway, seen } = await openRecording();
  await using _ = gateway;
  const headers = { 'content-type': 'application/json', 'content-length': '0' };
  assert.is((await ask(gateway.url, 'POST', '/v1/contexts', { headers })).status, 201);
  assert.is((await ask(gateway.url, 'POST', '/v1/contexts')).status, 201);
  assert.is((await ask(gateway.url, 'PUT', '/v1/contexts/c', { headers })).status, 200);
  const gone = await ask(gateway.url, 'DELETE', '/v1/contexts/c', { headers });
  assert.is(gone.status, 204);
  assert.is(gone.text, '');
  assert.is(seen.contexts.length, 2);
});

test('literal paths precede parameters', async () => {
  const { gateway, seen } = await openRecording();
  await using _ = gateway;
  const page = await ask(gateway.url, 'GET', '/v1/functions/builds?limit=5&offset=0');
  assert.equal(page.json, { data: [], total: 0 });
  assert.equal(seen.paths, [['listBuilds', { limit: 5, offset: 0, status: undefined }]]);
  const one = await ask(gateway.url, 'GET', '/v1/functions/an%20id');
  assert.is((one.json as { id: string }).id, 'an id');
});

test('path values replace body values of the same name', async () => {
  const { gateway, seen } = await openRecording();
  await using _ = gateway;
  const body = json({ functionId: 'other', params: { a: null, b: [1, { c: 'x' }] } });
  const answer = await ask(gateway.url, 'POST', '/v1/functions/mine/invoke', body);
  assert.is(answer.status, 202);
  assert.is(seen.invocations[0]?.functionId, 'mine');
  assert.equal(seen.invocations[0]?.params, undefined, 'params pass as text');
  assert.is(seen.invocations[0]?.paramsJson, '{"a":null,"b":[1,{"c":"x"}]}');
  assert.equal((answer.json as typeof INVOCATION).params, { a: null, b: [1, { c: 'x' }] });
});

for (const reason of ['OUTCOME_UNKNOWN', 'DEADLINE'] as const) {
  test(`${reason}: to be repeated with the same idempotency key, and not without one`, async () => {
    await using gateway = await openGateway({
      invocations: {
        async invokeFunction() {
          throw new Fault(reason, 'The outcome is unknown; read the object before trying again.');
        },
      },
    });
    const { headers } = json({});
    const keyed = { body: '{}', headers: { ...headers, 'idempotency-key': 'k' } };
    const safe = await ask(gateway.url, 'POST', '/v1/functions/f/invoke', keyed);
    assert.match(safe.text, 'repeat the request with the same Idempotency-Key');
    assert.is(safe.headers['x-should-retry'], 'true');
    const bare = await ask(gateway.url, 'POST', '/v1/functions/f/invoke', json({}));
    assert.match(bare.text, 'read the object before trying again');
    assert.is(bare.headers['x-should-retry'], 'false');
    assert.is(bare.status, safe.status);
  });
}

test('absent optional fields are absent, times are ISO 8601, enums short names', async () => {
  const { gateway } = await openRecording();
  await using _ = gateway;
  const none = (await ask(gateway.url, 'GET', '/v1/functions/invocations/none')).json as object;
  assert.not.ok('results' in none);
  assert.not.ok('endedAt' in none);
  assert.not.ok('cause' in none);
  assert.is(Reflect.get(none, 'createdAt'), '2026-05-03T12:53:37.151Z');
  assert.is(Reflect.get(none, 'status'), 'COMPLETED');
  const some = (await ask(gateway.url, 'GET', '/v1/functions/invocations/some')).json as object;
  assert.equal(Reflect.get(some, 'results'), { list: [1.5, null, 'x'] });
});

test('empty lists are [] and a null Value prints null', async () => {
  const { gateway } = await openRecording();
  await using _ = gateway;
  const page = await ask(gateway.url, 'GET', '/v1/contexts');
  assert.is(page.text, '{"data":[],"limit":20,"nextCursor":null}');
  assert.is((await ask(gateway.url, 'GET', '/v1/sessions')).text, '[]');
});

const FAULTY: [string, string, unknown, string][] = [
  ['POST', '/v1/contexts', { name: 5 }, '`name` must be a string.'],
  ['POST', '/v1/contexts', [], 'Body must be a JSON object.'],
  ['POST', '/v1/contexts', null, 'Body must be a JSON object.'],
  ['POST', '/v1/functions/f/invoke', { params: [] }, '`params` must be an object.'],
  ['POST', '/v1/functions/f/invoke', { parms: {} }, '`parms` is not a known field.'],
  [
    'POST',
    '/v1/functions/f/invoke',
    { sessionCreateParams: { keepAlive: true } },
    '`sessionCreateParams.keepAlive` is not a known field.',
  ],
  [
    'POST',
    '/v1/functions/f/invoke',
    { sessionCreateParams: { timeout: '60' } },
    '`sessionCreateParams.timeout` must be a whole number.',
  ],
  [
    'POST',
    '/v1/functions/f/invoke',
    { sessionCreateParams: { timeout: 60.5 } },
    '`sessionCreateParams.timeout` must be a whole number.',
  ],
  [
    'POST',
    '/v1/functions/f/invoke',
    { sessionCreateParams: { timeout: -1 } },
    '`sessionCreateParams.timeout` is out of range.',
  ],
  [
    'POST',
    '/v1/functions/f/invoke',
    { sessionCreateParams: { browserSettings: { viewport: 5 } } },
    '`sessionCreateParams.browserSettings.viewport` must be an object.',
  ],
  ['POST', '/v1/webhooks', { eventTypes: 'x' }, '`eventTypes` must be an array.'],
  ['POST', '/v1/webhooks', { eventTypes: ['x', 1] }, '`eventTypes[1]` must be a string.'],
  ['POST', '/v1/webhooks', { event_types: [] }, '`event_types` is not a known field.'],
];

test('a wrong body is a 400 that names the field, and core is not called', async () => {
  const { gateway, seen } = await openRecording();
  await using _ = gateway;
  for (const [method, path, body, message] of FAULTY) {
    const answer = await ask(gateway.url, method, path, json(body));
    assert.equal(answer.json, { statusCode: 400, error: 'Bad Request', message }, path);
  }
  assert.is(seen.contexts.length + seen.invocations.length + seen.webhooks.length, 0);
});

test('an unknown key is ignored where the body is open, also inside browserSettings', async () => {
  const { gateway, seen } = await openRecording();
  await using _ = gateway;
  const created = await ask(gateway.url, 'POST', '/v1/contexts', json({ nme: 1, name: null }));
  assert.is(created.status, 201);
  assert.is(seen.contexts[0]?.name, undefined);
  const settings = { browserSettings: { size: 'small', blockAds: true } };
  const body = json({ sessionCreateParams: settings });
  assert.is((await ask(gateway.url, 'POST', '/v1/functions/f/invoke', body)).status, 202);
  assert.is(seen.invocations[0]?.sessionCreateParams?.browserSettings?.blockAds, true);
});

test('query values are read by the type of their field', async () => {
  const { gateway, seen } = await openRecording();
  await using _ = gateway;
  await ask(gateway.url, 'GET', '/v1/sessions?status=RUNNING&q=a%20b');
  assert.equal(seen.sessions[0], { status: 'RUNNING', q: 'a b', label: [] });
  await ask(gateway.url, 'GET', '/v1/sessions?label=a%20b&q=x&label=__proto__');
  assert.equal(seen.sessions[1], { status: undefined, q: 'x', label: ['a b', '__proto__'] });
  const wrong: [string, string][] = [
    ['/v1/contexts?limit=ten', '`limit` must be a whole number.'],
    ['/v1/contexts?limit=', '`limit` must be a whole number.'],
    ['/v1/contexts?limit=1&limit=2', '`limit` must be given once.'],
    ['/v1/contexts?limit=-1', '`limit` is out of range.'],
    ['/v1/contexts?zz=1', '`zz` is not a known query parameter.'],
    ['/v1/contexts?__proto__=1', '`__proto__` is not a known query parameter.'],
    [
      '/v1/sessions?status=DONE',
      '`status` must be one of PENDING, RUNNING, ERROR, TIMED_OUT, COMPLETED.',
    ],
  ];
  for (const [path, message] of wrong) {
    const answer = await ask(gateway.url, 'GET', path);
    assert.equal(answer.json, { statusCode: 400, error: 'Bad Request', message }, path);
  }
  assert.is(seen.paths.length, 0);
  const posted = await ask(gateway.url, 'POST', '/v1/contexts?name=x', json({}));
  assert.is(posted.status, 400);
});

test('an operation that is not implemented responds 501', async () => {
  await using gateway = await openGateway();
  const answer = await ask(gateway.url, 'GET', '/v1/sessions/s/debug');
  assert.is(answer.status, 501);
  assert.is(Reflect.get(answer.json as object, 'error'), 'Not Implemented');
});

test.run();
