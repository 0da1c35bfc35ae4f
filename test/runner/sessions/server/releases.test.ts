/** Polls for releases: each response is the whole list, and each request names the known ones. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import type { AwaitReleasesRequest } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { CallOptions } from '../../../../proto/rpc/local.ts';
import type { Clients } from '../../../../proto/rpc/services.ts';
import { followNotifications } from '../../../../runner/sessions/server/notifications.ts';
import { BROWSERS } from '../../../support/runner/browsers.ts';

const test = suite('runner/sessions/server/releases');
type Answer = string[] | Fault;

/** Follows the releases until the responses are used up; returns the requests and the releases. */
async function never(signal: AbortSignal | undefined): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal?.addEventListener('abort', () => reject(signal.reason));
  return await promise;
}

async function follow(answers: Answer[], end: 'signal' | 'answers' = 'signal') {
  const asked: AwaitReleasesRequest[] = [];
  const released: (readonly string[])[] = [];
  const over = new AbortController();
  const runners = {
    async awaitReleases(request: AwaitReleasesRequest) {
      asked.push(request);
      const answer = answers[asked.length - 1] ?? [];
      if (asked.length === answers.length && end === 'signal') over.abort();
      if (answer instanceof Fault) throw answer;
      return { leaseIds: answer };
    },
    async awaitHandoffs(_: unknown, { signal }: CallOptions) {
      if (end === 'answers') throw new Fault('LEASE_LOST', 'superseded');
      return await never(signal);
    },
    async awaitRevocations(_: unknown, { signal }: CallOptions) {
      if (end === 'answers') throw new Fault('LEASE_LOST', 'superseded');
      return await never(signal);
    },
  } as unknown as Clients['runners'];
  await followNotifications({
    clients: { runners },
    call: {},
    runner: { runnerId: 'r', instanceId: 'i' },
    server: { revoke: () => undefined },
    handoffs: BROWSERS.handoffs,
    leases: { release: (leaseIds) => void released.push(leaseIds) },
    log: openLog({ role: 'test', level: 'silent' }),
    signal: over.signal,
  });
  return { asked, released };
}

test('the next poll names the releases of the last response', async () => {
  const { asked, released } = await follow([['a'], ['a', 'b'], ['b'], []]);
  assert.equal(
    asked.map(({ knownLeaseIds }) => knownLeaseIds),
    [[], ['a'], ['a', 'b'], ['b']],
  );
  assert.equal(released, [['a'], ['a', 'b'], ['b'], []]);
});

test('polling is retried after an outage, and no release is undone', async () => {
  const { released } = await follow([['a'], new Fault('CORE_UNAVAILABLE', 'away'), ['a', 'b']]);
  assert.equal(released, [['a'], ['a', 'b']]);
});

test('a superseded runner stops polling', async () => {
  const { asked } = await follow([new Fault('LEASE_LOST', 'superseded')], 'answers');
  assert.is(asked.length, 1);
});

test.run();
