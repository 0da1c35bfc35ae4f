/** Releases: all of them each time; what is known is not waited for again. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import type { AwaitReleasesRequest } from '../../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { Clients } from '../../../../proto/rpc/services.ts';
import { followReleases } from '../../../../runner/sessions/server/notifications.ts';

const test = suite('runner/sessions/server/releases');
type Answer = string[] | Fault;

/** Follows until the answers are over; gives what was asked and what was released. */
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
  } as unknown as Clients['runners'];
  await followReleases({
    clients: { runners },
    call: {},
    runner: { runnerId: 'r', instanceId: 'i' },
    leases: { release: (leaseIds) => void released.push(leaseIds) },
    log: openLog({ role: 'test', level: 'silent' }),
    signal: over.signal,
  });
  return { asked, released };
}

test('what core has told is named in the next question, what it forgot is not', async () => {
  const { asked, released } = await follow([['a'], ['a', 'b'], ['b'], []]);
  assert.equal(
    asked.map(({ knownLeaseIds }) => knownLeaseIds),
    [[], ['a'], ['a', 'b'], ['b']],
  );
  assert.equal(released, [['a'], ['a', 'b'], ['b'], []]);
});

test('a core that was away is asked again; nothing is taken back meanwhile', async () => {
  const { released } = await follow([['a'], new Fault('CORE_UNAVAILABLE', 'away'), ['a', 'b']]);
  assert.equal(released, [['a'], ['a', 'b']]);
});

test('a superseded runner asks no more', async () => {
  const { asked } = await follow([new Fault('LEASE_LOST', 'superseded')], 'answers');
  assert.is(asked.length, 1);
});

test.run();
