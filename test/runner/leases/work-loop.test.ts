/** The work loop: places, retries, and the announcement before the lease is acknowledged. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ReportRunnerResponse, Work } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { Leases } from '../../../runner/leases/leases.ts';
import { type LoopOptions, workLoop } from '../../../runner/leases/work-loop.ts';
import { until } from '../../support/poll.ts';
import { testRunner } from '../../support/runner/lease.ts';
import { localLeases } from '../../support/runner/leases.ts';

const loop = suite('runner/leases/work-loop');
type Runners = Clients['runners'];

/** Renewals that fail, one of them without an answer: for much longer than a lease. */
const AWAY_CALLS = 8;

const never = new AbortController().signal;
const noLeases: Leases = {
  hold: (id) => ({
    id,
    lost: never,
    released: never,
    acknowledged: Promise.resolve(),
    append: async () => false,
    pauseOf: (_id, ms) => ms,
    waitOf: () => 0,
    report: async (send) => void (await send()),
    [Symbol.dispose]() {},
  }),
  held: () => 0,
  release: () => {},
  acknowledge: () => {},
  drain: () => {},
  async [Symbol.asyncDispose]() {},
};

const SHARED = {
  kind: 'INVOCATION',
  leases: noLeases,
  onSuperseded: () => assert.unreachable(),
} as const satisfies Partial<LoopOptions>;

/** A runner with this core, which ends with the signal. */
function runnerOf(runners: Partial<Runners>, ending: AbortSignal) {
  return testRunner({ clients: { runners }, ending });
}

function work(leaseId: string): Work {
  return { leaseId, item: undefined };
}

/** Leases two pieces of work once. Returns what happened, in order. */
async function run(isAcknowledged: boolean): Promise<string[]> {
  const acts: string[] = [];
  const ending = new AbortController();
  const acknowledged = Promise.withResolvers<void>();
  const offered = ['a', 'b'].map(work);
  let polls = 0;
  const runners = {
    async leaseWork() {
      polls += 1;
      if (polls === 1) return { work: offered };
      acts.push('polled again');
      ending.abort();
      throw ending.signal.reason;
    },
  } as unknown as Runners;
  const lost = new AbortController();
  const leases = {
    held: () => 0,
    acknowledge: (ids: string[]) => void acts.push(`acknowledged ${ids}`),
    hold: () => ({ lost: lost.signal, acknowledged: acknowledged.promise, [Symbol.dispose]() {} }),
  } as unknown as Leases;
  const looping = workLoop({
    ...SHARED,
    max: 4,
    runner: testRunner({ clients: { runners }, ending: ending.signal }),
    leases,
    announce({ leaseId }) {
      acts.push(`${leaseId} announced`);
      return { [Symbol.dispose]: () => void acts.push(`${leaseId} withdrawn`) };
    },
    async run({ leaseId }, held) {
      acts.push(`${leaseId} prepared`);
      await held.acknowledged;
      acts.push(`${leaseId} ${held.lost.aborted ? 'left' : 'runs'}`);
    },
  });
  await until(() => acts.length === BEFORE.length);
  if (!isAcknowledged) lost.abort();
  acknowledged.resolve();
  await looping;
  return acts;
}

const BEFORE = ['a announced', 'b announced', 'acknowledged a,b', 'a prepared', 'b prepared'];

loop('work is announced, then prepared while its lease is being acknowledged', async () => {
  const acts = await run(true);
  assert.equal(acts.slice(0, 5), BEFORE);
  const after = ['a runs', 'a withdrawn', 'b runs', 'b withdrawn', 'polled again'];
  assert.equal(acts.slice(5).toSorted(), after);
});

loop('work whose lease is lost before its acknowledgement is not run', async () => {
  const acts = await run(false);
  assert.equal(acts.slice(0, 5), BEFORE);
  const after = ['a left', 'a withdrawn', 'b left', 'b withdrawn', 'polled again'];
  assert.equal(acts.slice(5).toSorted(), after);
});

loop('there is never more work than places, and the loop waits for the last piece', async () => {
  const asked: number[] = [];
  const ended = new AbortController();
  const finish: (() => void)[] = [];
  let running = 0;
  const looping = workLoop({
    ...SHARED,
    max: 3,
    runner: runnerOf(
      {
        async leaseWork({ max }) {
          asked.push(max);
          return { work: asked.length > 3 ? [] : [work(`${asked.length}`)] };
        },
      },
      ended.signal,
    ),
    async run() {
      running += 1;
      if (running === 3) queueMicrotask(() => ended.abort());
      await new Promise<void>((resolve) => finish.push(resolve));
      running -= 1;
    },
  });
  while (!ended.signal.aborted) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked, [3, 2, 1]);
  for (const end of finish) end();
  await looping;
  assert.is(running, 0);
});

loop('work goes on while core is away, and a lease that core gave up frees its place', async () => {
  const ended = new AbortController();
  const told = Promise.withResolvers<ReportRunnerResponse>();
  const acts: string[] = [];
  let calls = 0;
  const runners: Partial<Runners> = {
    async leaseWork() {
      if (acts.length === 0) return { work: [work('a')] };
      ended.abort();
      return { work: [] };
    },
    async reportRunner({ leaseIds }) {
      if (leaseIds.length === 0) return { leaseIds, answers: undefined, readIds: [] };
      calls += 1;
      if (calls === 1) return told.promise; // the renewal has arrived
      if (calls <= AWAY_CALLS) throw new Fault('CORE_UNAVAILABLE', 'away');
      return { leaseIds: [], answers: undefined, readIds: [] };
    },
  };
  const runner = runnerOf(runners, ended.signal);
  const { clients, call, log, identity, stopped } = runner;
  const leases = localLeases({
    clients,
    call,
    log,
    runner: identity,
    leaseMs: 15,
    now: () => 0,
    onSuperseded: SHARED.onSuperseded,
    stopped,
    signal: ended.signal,
  });
  const looping = workLoop({
    ...SHARED,
    runner,
    max: 1,
    leases,
    async run(_work, { lost, acknowledged }) {
      await acknowledged;
      acts.push(lost.aborted ? `left after ${calls} calls` : 'runs');
    },
  });
  await until(() => ended.signal.aborted, 10_000);
  assert.equal(acts, [`left after ${AWAY_CALLS + 1} calls`]);
  told.reject(new Fault('CORE_UNAVAILABLE', 'away'));
  await Promise.all([looping, leases.renewing]);
});

loop('a failed lease call is retried, and failed work does not end the loop', async () => {
  const ended = new AbortController();
  let calls = 0;
  await workLoop({
    ...SHARED,
    max: 1,
    runner: runnerOf(
      {
        async leaseWork() {
          calls += 1;
          if (calls === 1) throw new Fault('CORE_UNAVAILABLE', 'away');
          if (calls === 2) return { work: [work('bad')] };
          ended.abort();
          return { work: [] };
        },
      },
      ended.signal,
    ),
    async run() {
      throw new Error('broken');
    },
  });
  assert.is(calls, 3);
});

loop('a superseded instance leases no more work', async () => {
  let calls = 0;
  let told = 0;
  await workLoop({
    ...SHARED,
    max: 1,
    runner: runnerOf(
      {
        async leaseWork() {
          calls += 1;
          throw new Fault('LEASE_LOST', 'a newer one is registered');
        },
      },
      never,
    ),
    onSuperseded: () => {
      told += 1;
    },
    run: async () => assert.unreachable(),
  });
  assert.equal([calls, told], [1, 1]);
});

loop.run();
