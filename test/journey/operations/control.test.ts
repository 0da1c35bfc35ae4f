/** Cancelling, waiting and repeating, over REST and gRPC, with a running handler. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { remote } from '../../../proto/rpc/remote.ts';
import { SERVICES } from '../../../proto/rpc/services.ts';
import { type Invocation, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { channelOf } from '../../support/service/operator.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const test = suite('journey/operations/control');
const PROJECT = {
  'package.json': '{"name":"control","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('quick', async (_, params) => params);
defineFn('endless', () => new Promise(() => setInterval(() => {}, 1000)));
`,
};
const WAIT = { prefer: 'wait=60' };

function invoke(stack: Stack, id: string, headers: Record<string, string>, params: object = {}) {
  const init = { method: 'POST', json: { params }, headers };
  return stack.fetch(`/v1/functions/${id}/invoke`, init);
}

async function json(answer: Response): Promise<Invocation> {
  return (await answer.json()) as Invocation;
}

test('an invocation is awaited, runs once per idempotency key and is cancelled', async () => {
  await using stack = await boot();
  const built = await publish(stack, PROJECT);
  const [quick, endless] = [must(built['quick'], 'quick'), must(built['endless'], 'endless')];

  const keyed = { ...WAIT, 'idempotency-key': 'once' };
  const answer = await invoke(stack, quick, keyed, { n: 1 });
  assert.equal([answer.status, answer.headers.get('preference-applied')], [200, 'wait=60']);
  const done = await json(answer);
  assert.equal([done.status, done.results], ['COMPLETED', { n: 1 }]);
  assert.is((await json(await invoke(stack, quick, keyed, { n: 1 }))).id, done.id);
  assert.is((await invoke(stack, quick, keyed, { n: 2 })).status, 422);

  const { id } = await json(await invoke(stack, endless, {}));
  const path = `/v1/functions/invocations/${id}`;
  await until(async () => (await stack.call<Invocation>(path)).status === 'RUNNING');
  const waiting = stack.call<Invocation>(`${path}?wait=60`);
  const cancelled = await stack.call<Invocation>(`${path}/cancel`, { method: 'POST' });
  assert.is(cancelled.id, id);
  const { status, cause } = await waiting;
  assert.equal([status, cause?.code], ['FAILED', 'WORKLOAD_ERROR']);
  assert.match(cause?.message ?? '', 'cancelled');
  assert.is((await stack.fetch(`${path}?wait=61`)).status, 400);

  using channel = channelOf(stack.dataDir);
  const grpc = remote(SERVICES.invocations, channel);
  const call = { metadata: { 'x-svc-api-key': stack.apiKey }, timeoutMs: 90_000 };
  const request = { functionId: endless, params: {}, sessionCreateParams: undefined };
  const again = { ...request, idempotencyKey: 'of grpc' };
  const [first, second] = [
    await grpc.invokeFunction(again, call),
    await grpc.invokeFunction(again, call),
  ];
  assert.is(second.invocation?.id, first.invocation?.id);
  const one = { id: must(first.invocation, 'invocation').id };
  const ended = grpc.getInvocation({ ...one, wait: 60 }, call);
  await grpc.cancelInvocation(one, call);
  assert.is((await ended).invocation?.status, 'FAILED');
});

test.run();
