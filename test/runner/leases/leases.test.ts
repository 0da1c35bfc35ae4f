/** How a lease is acknowledged, renewed, released and lost. Core is a stub. */
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import type { LogAnswers } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { until } from '../../support/poll.ts';
import { localLeases } from '../../support/runner/leases.ts';

const test = suite('runner/leases/leases');
const log = openLog({ role: 'test', level: 'silent' });
const runner = { runnerId: 'r', instanceId: 'i' };
type Runners = Clients['runners'];
type Given = Pick<Parameters<typeof localLeases>[0], 'leaseMs' | 'now' | 'stopped'>;
const never = new AbortController().signal;
/** No lease is renewed while a test runs. */
const SELDOM = { leaseMs: 3_600_000 };

function leasesOf(
  renewLeases: (
    ...call: Parameters<Runners['reportRunner']>
  ) => Promise<{ leaseIds: string[]; answers?: LogAnswers; readIds?: string[] }>,
  given: Partial<Given> & { warn?: (message: string) => void } = {},
) {
  const over = new AbortController();
  const superseded = new AbortController();
  const onSuperseded = () => superseded.abort();
  const { signal } = over;
  const runners = {
    reportRunner: async (...call: Parameters<Runners['reportRunner']>) => ({
      readIds: [],
      answers: undefined,
      ...(await renewLeases(...call)),
    }),
  };
  const clients = { runners };
  const times = { leaseMs: 15, now: () => performance.now(), stopped: never };
  const { warn = () => undefined } = given;
  const noted = { ...log, warn: (_fields: unknown, message: string) => warn(message) };
  const own = { clients, call: {}, runner, log: noted as unknown as typeof log, onSuperseded };
  const leases = localLeases({ ...own, ...times, ...given, signal });
  return {
    leases,
    superseded: superseded.signal,
    async [Symbol.asyncDispose]() {
      over.abort();
      await leases.renewing;
    },
  };
}

test('a lease that a renewal does not confirm is lost, the others are kept', async () => {
  const asked: string[][] = [];
  await using scene = leasesOf(async ({ leaseIds }) => {
    asked.push(leaseIds);
    return { leaseIds: leaseIds.filter((id) => id !== 'gone') };
  });
  const kept = scene.leases.hold('kept');
  const gone = scene.leases.hold('gone');
  scene.leases.acknowledge(['kept', 'gone']);
  await once(gone.lost, 'abort');
  assert.match(String(gone.lost.reason), /its acknowledgement was late/);
  assert.not.ok(kept.lost.aborted);
  assert.is(scene.leases.held(), 1);
  assert.equal(asked[0], ['kept', 'gone']);
  kept[Symbol.dispose]();
  assert.is(scene.leases.held(), 0);
});

test('leases outlive any absence of core, and are presented when it is back', async () => {
  let now = 0;
  let calls = 0;
  let isAway = false;
  await using scene = leasesOf(
    async ({ leaseIds }) => {
      calls += 1;
      if (isAway) throw new Fault('CORE_UNAVAILABLE', 'away');
      return { leaseIds: leaseIds.filter((id) => id !== 'given up') };
    },
    { now: () => now },
  );
  const held = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await held.acknowledged;
  isAway = true;
  const [waiting, gone] = [scene.leases.hold('b'), scene.leases.hold('given up')];
  scene.leases.acknowledge(['b', 'given up']);
  now = 3_600_000;
  const before = calls;
  await until(() => calls > before + 5);
  assert.not.ok([held, waiting, gone].some(({ lost }) => lost.aborted));
  isAway = false;
  await Promise.all([waiting.acknowledged, gone.acknowledged]);
  assert.not.ok(held.lost.aborted || waiting.lost.aborted);
  assert.ok(gone.lost.aborted);
  assert.is(scene.leases.held(), 2);
});

test('a released lease is still held; a later one is released when it is received', async () => {
  await using scene = leasesOf(async ({ leaseIds }) => ({ leaseIds }));
  const here = scene.leases.hold('here');
  const other = scene.leases.hold('other');
  scene.leases.release(['here', 'coming', 'unknown']);
  assert.ok(here.released.aborted);
  assert.not.ok(here.lost.aborted);
  assert.not.ok(other.released.aborted);
  assert.ok(scene.leases.hold('coming').released.aborted);
  assert.is(scene.leases.held(), 3);
  scene.leases.release([]); // core forgets what has ended
  assert.not.ok(scene.leases.hold('unknown').released.aborted);
});

test('a lease that core has ended before its acknowledgement is lost', async () => {
  const answer = async ({ leaseIds }: { leaseIds: string[] }) => {
    return { leaseIds: leaseIds.slice(0, 1) };
  };
  await using scene = leasesOf(answer, SELDOM);
  const known = scene.leases.hold('known');
  const gone = scene.leases.hold('gone');
  scene.leases.acknowledge(['known', 'gone']);
  await Promise.all([known.acknowledged, gone.acknowledged]);
  assert.not.ok(known.lost.aborted);
  assert.match(String(gone.lost.reason), /its acknowledgement was late/);
  assert.is(scene.leases.held(), 1);
});

test('a lease whose work has ended before its acknowledgement settles', async () => {
  const answer = Promise.withResolvers<{ leaseIds: string[] }>();
  await using scene = leasesOf(() => answer.promise, SELDOM);
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  lease[Symbol.dispose]();
  await lease.acknowledged;
  answer.resolve({ leaseIds: ['a'] });
});

test('an acknowledgement is retried for the leases that are still held', async () => {
  const told: string[][] = [];
  await using scene = leasesOf(async ({ leaseIds }) => {
    told.push(leaseIds);
    if (told.length === 1) throw new Fault('CORE_UNAVAILABLE', 'away');
    return { leaseIds };
  }, SELDOM);
  const [over, kept] = [scene.leases.hold('over'), scene.leases.hold('kept')];
  scene.leases.acknowledge(['over', 'kept']);
  over[Symbol.dispose]();
  await kept.acknowledged;
  assert.not.ok(kept.lost.aborted);
  assert.equal(told, [['over', 'kept'], ['kept']]);
});

test('a lease whose acknowledgement is refused is lost', async () => {
  await using scene = leasesOf(() => Promise.reject(new Fault('INTERNAL', 'broken')), SELDOM);
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await lease.acknowledged;
  assert.match(String(lease.lost.reason), /could not be acknowledged/);
  assert.not.ok(scene.superseded.aborted);
});

test('an acknowledgement that a newer runner supersedes loses all leases', async () => {
  const refused = () => Promise.reject(new Fault('LEASE_LOST', 'a newer instance'));
  await using scene = leasesOf(refused, SELDOM);
  const [lease, other] = [scene.leases.hold('a'), scene.leases.hold('other')];
  scene.leases.acknowledge(['a']);
  await lease.acknowledged;
  assert.ok(lease.lost.aborted);
  assert.ok(other.lost.aborted);
  assert.ok(scene.superseded.aborted);
});

test('a lost lease settles at once, while another is still being acknowledged', async () => {
  const told = Promise.withResolvers<{ leaseIds: string[] }>();
  let calls = 0;
  await using scene = leasesOf(({ leaseIds }) => {
    calls += 1;
    return calls === 1 ? told.promise : Promise.resolve({ leaseIds: leaseIds.slice(0, 1) });
  });
  const [other, gone] = [scene.leases.hold('other'), scene.leases.hold('gone')];
  scene.leases.acknowledge(['other', 'gone']);
  await gone.acknowledged;
  assert.ok(gone.lost.aborted);
  assert.not.ok(other.lost.aborted);
  told.resolve({ leaseIds: ['other'] });
  await other.acknowledged;
  assert.not.ok(other.lost.aborted);
});

test('a renewal acknowledges a lease, which is kept when its acknowledgement fails', async () => {
  const told = Promise.withResolvers<{ leaseIds: string[] }>();
  let calls = 0;
  await using scene = leasesOf(({ leaseIds }) => {
    calls += 1;
    if (calls === 1) return told.promise;
    return Promise.resolve({ leaseIds });
  });
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  const isTaken = lease.acknowledged.then(() => true);
  const hasBegun = await Promise.race([isTaken, until(() => calls > 3).then(() => false)]);
  told.reject(new Fault('INTERNAL', 'the answer was lost'));
  assert.ok(hasBegun);
  const before = calls;
  await until(() => calls > before + 1);
  assert.not.ok(lease.lost.aborted);
  assert.is(scene.leases.held(), 1);
});

test('the end of the leases cancels an acknowledgement that is under way', async () => {
  const asked = Promise.withResolvers<AbortSignal | undefined>();
  const answer = Promise.withResolvers<{ leaseIds: string[] }>();
  await using scene = leasesOf((_request, options) => {
    asked.resolve(options?.signal);
    return answer.promise;
  }, SELDOM);
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  const signal = await asked.promise;
  await scene.leases[Symbol.asyncDispose]();
  assert.ok(signal?.aborted);
  answer.reject(new Fault('CANCELLED', 'The caller left.'));
  await lease.acknowledged;
  assert.ok(lease.lost.aborted);
});

test('a lease whose acknowledgement is refused is renewed no more', async () => {
  const renewed: string[][] = [];
  await using scene = leasesOf(
    async ({ leaseIds }) => {
      if (leaseIds.includes('a')) throw new Fault('INTERNAL', 'broken');
      renewed.push(leaseIds);
      return { leaseIds };
    },
    { leaseMs: 15 },
  );
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await lease.acknowledged;
  assert.ok(lease.lost.aborted);
  await until(() => renewed.length > 1);
  assert.equal(renewed.flat(), []);
});

test('a stopped runner loses unacknowledged leases', async () => {
  const stopped = new AbortController();
  let calls = 0;
  const away = async () => {
    calls += 1;
    throw new Fault('CORE_UNAVAILABLE', 'away');
  };
  await using scene = leasesOf(away, { ...SELDOM, stopped: stopped.signal });
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await until(() => calls === 2);
  assert.not.ok(lease.lost.aborted);
  stopped.abort();
  await lease.acknowledged;
  assert.ok(lease.lost.aborted);
  assert.is(calls, 2);
});

test('a superseded instance loses all leases', async () => {
  const refuse = () => Promise.reject(new Fault('LEASE_LOST', 'a newer one is registered'));
  await using scene = leasesOf(refuse);
  const held = [scene.leases.hold('a'), scene.leases.hold('b')];
  scene.leases.acknowledge(['a', 'b']);
  await once(scene.superseded, 'abort');
  assert.ok(held.every(({ lost }) => lost.aborted));
});

/** A lease whose next renewal is answered without it, by `lose`. */
async function losable() {
  const warnings: string[] = [];
  const answer = Promise.withResolvers<{ leaseIds: string[] }>();
  let calls = 0;
  const scene = leasesOf(
    ({ leaseIds }) => {
      calls += 1;
      if (calls === 1 || leaseIds.length === 0) return Promise.resolve({ leaseIds });
      return answer.promise;
    },
    { warn: (message) => warnings.push(message) },
  );
  const lease = scene.leases.hold('a');
  scene.leases.acknowledge(['a']);
  await lease.acknowledged;
  await until(() => calls === 2);
  return {
    lease,
    warnings,
    /** Resolves after the answer was handled: the next renewal follows it. */
    async lose(): Promise<void> {
      answer.resolve({ leaseIds: [] });
      await until(() => calls > 2);
    },
    [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose](),
  };
}

test('a lease whose outcome core has acknowledged during a renewal is not lost', async () => {
  await using scene = await losable();
  await scene.lease.report(async () => true);
  await scene.lose();
  assert.equal(scene.warnings, []);
  assert.not.ok(scene.lease.lost.aborted);
});

test('a loss during the report is a warning only when core does not answer', async () => {
  for (const isAnswered of [true, false]) {
    await using scene = await losable();
    await scene.lease.report(async () => {
      await scene.lose();
      assert.ok(scene.lease.lost.aborted);
      return isAnswered;
    });
    assert.equal(scene.warnings, isAnswered ? [] : ['a lease is lost']);
  }
});

test('a loss before the report is one warning, and nothing is reported', async () => {
  await using scene = await losable();
  await scene.lose();
  await scene.lease.report(() => Promise.reject(new Error('reported')));
  assert.equal(scene.warnings, ['a lease is lost']);
});

test.run();
