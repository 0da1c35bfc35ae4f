/** Invocations over REST: idempotency keys, preferences, waits. Core is the test's own. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type {
  GetInvocationRequest,
  Invocation,
  InvokeFunctionRequest,
} from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Call } from '../../../proto/rpc/local.ts';
import { ask, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/routes/invoke');
const INVOKE = '/v1/functions/01a1fbc0-0000-7000-8000-000000000000/invoke';
const T = new Date(0);

function made(more: Partial<Invocation> = {}): Invocation {
  return {
    id: 'i',
    projectId: 'p',
    functionId: 'f',
    versionId: 'v',
    sessionId: 's',
    region: 'r',
    params: {},
    status: 'PENDING',
    results: undefined,
    cause: undefined,
    trigger: undefined,
    endedAt: undefined,
    createdAt: T,
    updatedAt: T,
    startedAt: T,
    expiresAt: T,
    ...more,
  };
}

type Read = (request: GetInvocationRequest, call: Call) => Promise<{ invocation: Invocation }>;

/** A gateway whose core accepts every call and returns the configured reads. */
async function open(getInvocation: Read) {
  const invoked: InvokeFunctionRequest[] = [];
  const invokeFunction = async (request: InvokeFunctionRequest) => {
    invoked.push(request);
    return { invocation: made() };
  };
  const gateway = await openGateway({ invocations: { invokeFunction, getInvocation } });
  const invoke = (headers: Record<string, string | string[]> = {}, body: object = {}) =>
    ask(gateway.url, 'POST', INVOKE, {
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  return {
    gateway,
    invoked,
    invoke,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

const unread: Read = () => {
  throw new Error('nobody asked to wait');
};

test('without headers there is no wait, and core receives none', async () => {
  await using app = await open(unread);
  const { status, headers } = await app.invoke();
  assert.equal([status, headers['preference-applied']], [202, undefined]);
  assert.equal([app.invoked[0]?.idempotencyKey, app.invoked[0]?.versionId], [undefined, undefined]);
});

test('an idempotency key is read from its header only, and only once', async () => {
  await using app = await open(unread);
  assert.is((await app.invoke({ 'idempotency-key': '"k"' }, { versionId: 'v' })).status, 202);
  assert.equal([app.invoked[0]?.idempotencyKey, app.invoked[0]?.versionId], ['"k"', 'v']);
  const twice = await app.invoke({ 'idempotency-key': ['a', 'b'] });
  assert.is(twice.status, 400);
  assert.match(twice.text, 'Idempotency-Key');
  const inBody = await app.invoke({}, { idempotencyKey: 'k' });
  assert.is(inBody.status, 400);
  assert.match(inBody.text, 'idempotencyKey');
  assert.is(app.invoked.length, 1);
});

test('Prefer: wait responds 200 with the outcome of an invocation that ended in time', async () => {
  const asked: [number | undefined, number][] = [];
  await using app = await open(async ({ wait }, { deadline }) => {
    asked.push([wait, deadline - performance.now()]);
    return { invocation: made({ status: 'COMPLETED', results: 7, endedAt: T }) };
  });
  const { status, headers, json } = await app.invoke({ prefer: 'respond-async, wait=45' });
  assert.equal([status, headers['preference-applied']], [200, 'wait=45']);
  assert.is((json as { results: number }).results, 7);
  const [wait, leftMs] = asked[0] ?? [0, 0];
  assert.is(wait, 45);
  assert.ok(leftMs > 45_000, 'the deadline is behind the wait');
});

test('Prefer: wait responds 202 with the current state when it has not ended', async () => {
  await using app = await open(async () => ({ invocation: made({ status: 'RUNNING' }) }));
  const { status, headers, json } = await app.invoke({ prefer: 'wait=1' });
  assert.equal([status, headers['preference-applied']], [202, undefined]);
  assert.is((json as { status: string }).status, 'RUNNING');
});

test('a failure during the wait does not hide that the invocation was accepted', async () => {
  await using app = await open(async () => {
    throw new Fault('CORE_UNAVAILABLE', 'away');
  });
  const { status, json } = await app.invoke({ prefer: 'wait=1' });
  assert.equal([status, (json as { id: string }).id], [202, 'i']);
});

test('a preference is met as far as possible; an invalid one is ignored', async () => {
  const waits: (number | undefined)[] = [];
  await using app = await open(async ({ wait }) => {
    waits.push(wait);
    return { invocation: made() };
  });
  for (const prefer of ['wait=600', 'wait="5"; x=y', 'WAIT = 7, wait=8']) {
    assert.is((await app.invoke({ prefer })).status, 202, prefer);
  }
  assert.equal(waits, [60, 5, 7]);
  for (const prefer of ['wait=0', 'wait', 'wait=soon', 'wait=-1', 'awaits=3', '']) {
    assert.is((await app.invoke({ prefer })).status, 202, prefer);
  }
  assert.is(waits.length, 3);
});

test('a read with wait has a longer deadline, and core receives its value', async () => {
  const asked: [number | undefined, boolean][] = [];
  await using app = await open(async ({ wait }, { deadline }) => {
    asked.push([wait, deadline - performance.now() > 60_000]);
    return { invocation: made() };
  });
  const read = (query: string) =>
    ask(app.gateway.url, 'GET', `/v1/functions/invocations/i${query}`);
  for (const query of ['', '?wait=60', '?wait=4000000000']) {
    assert.is((await read(query)).status, 200, query);
  }
  assert.equal(asked, [
    [undefined, false],
    [60, true],
    [4_000_000_000, true],
  ]);
  assert.match((await read('?wait=x')).text, '`wait` must be a whole number');
});

test('a disconnected client ends its wait in core', async () => {
  const begun = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  await using app = await open((_, { signal }) => {
    begun.resolve();
    signal.addEventListener('abort', () => left.resolve());
    return new Promise(() => {});
  });
  const leaving = new AbortController();
  const url = `${app.gateway.url}/v1/functions/invocations/i?wait=60`;
  const headers = { 'x-svc-api-key': 'svc_a-key-of-the-tests-only' };
  const answer = fetch(url, { signal: leaving.signal, headers }).catch(() => 'gone');
  await begun.promise;
  leaving.abort();
  assert.is(await answer, 'gone');
  await left.promise;
});

test('a closing gateway ends long polls with the current state', async () => {
  const begun = Promise.withResolvers<void>();
  const app = await open(async ({ wait }) => {
    if (wait === 0) return { invocation: made({ status: 'RUNNING' }) };
    begun.resolve();
    return new Promise(() => {});
  });
  const answer = ask(app.gateway.url, 'GET', '/v1/functions/invocations/i?wait=60');
  await begun.promise;
  await app.gateway.close();
  const { status, json } = await answer;
  assert.equal([status, (json as { status: string }).status], [200, 'RUNNING']);
});

test.run();
