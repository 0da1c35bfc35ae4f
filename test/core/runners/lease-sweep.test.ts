/** The sweep after a suspension of core, during which runners could not renew. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startSweep } from '../../../core/runners/lease-sweep.ts';
import { openLog } from '../../../proto/common/log.ts';

const test = suite('core/runners/lease-sweep');
const log = openLog({ role: 'test', level: 'silent', people: false });
const LEASE_MS = 15_000;
const LOST_MS = 300_000;
const TIMES = { leaseMs: LEASE_MS, lostMs: LOST_MS, sweepMs: 1 };
const NOW = 1_000_000;

/** The calls to the store of sweeps at these times. */
async function sweepsAt(
  times: number[],
  fails: (sweep: number) => boolean = () => false,
): Promise<string[]> {
  const asked: string[] = [];
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const left = [...times];
  let sweeps = 0;
  const store = {
    isLeader: () => true,
    async recoverWork({ at, leaseMs }: { at: number; leaseMs: number }) {
      asked.push(`leases until ${at + leaseMs}`);
    },
    async sweepWork({ lostAfterMs }: { lostAfterMs?: number }) {
      assert.is(lostAfterMs, LOST_MS - LEASE_MS);
      sweeps += 1;
      if (left.length === 0) end();
      if (fails(sweeps)) throw new Error('the database is away');
      asked.push('sweep');
      return [];
    },
  };
  const clock = (): number => left.shift() ?? Number(times.at(-1));
  const options = { store, log, now: () => NOW, clock, ...TIMES };
  await using _sweep = startSweep(options);
  await over;
  return asked;
}

test('a core that was suspended gives every lease a full term before it sweeps', async () => {
  const asked = await sweepsAt([0, 1_000, 9_000, 10_000]);
  const given = asked.indexOf(`leases until ${NOW + LEASE_MS}`);
  assert.equal(asked.slice(0, given), ['sweep']);
  assert.is(asked.filter((one) => one.startsWith('leases')).length, 1);
  assert.is(asked[given + 1], 'sweep');
});

test('after a time without its database every lease gets a full term', async () => {
  const asked = await sweepsAt([0, 1_000, 2_000, 9_000, 10_000], (sweep) => sweep === 2);
  assert.equal(asked.slice(0, 3), ['sweep', `leases until ${NOW + LEASE_MS}`, 'sweep']);
});

test('a core sweeps while it is the leader, and first gives every lease a full term', async () => {
  const asked: string[] = [];
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  let looks = 0;
  const store = {
    isLeader: () => ++looks > 3,
    recoverWork: async () => void asked.push(`leases at look ${looks}`),
    async sweepWork() {
      asked.push('sweep');
      end();
      return [];
    },
  };
  const clock = () => looks * LEASE_MS;
  const options = { store, log, now: () => NOW, clock, ...TIMES };
  await using _sweep = startSweep(options);
  await over;
  assert.equal(asked.slice(0, 2), ['leases at look 4', 'sweep']);
});

test('a slightly late sweep does not count as a suspension', async () => {
  const asked = await sweepsAt([0, 1_000, 8_000, 15_000]);
  assert.equal([...new Set(asked)], ['sweep']);
});

test('a sweep logs each session that it ends, in the words of runners', async () => {
  const said: unknown[][] = [];
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  const session = { id: 's', status: 'ERROR', reason: 'the runner was lost' } as const;
  const ends = [
    { kind: 'session', session } as const,
    { kind: 'build', session: undefined } as const,
  ];
  const store = {
    isLeader: () => true,
    recoverWork: async () => assert.unreachable(),
    async sweepWork() {
      const ended = ends.splice(0);
      if (ended.length === 0) end();
      return ended;
    },
  };
  const listening = { ...log, info: (...words: unknown[]) => said.push(words), warn: () => {} };
  const options = { store, log: listening as unknown as typeof log, now: () => NOW, ...TIMES };
  await using _sweep = startSweep(options);
  await over;
  const { id: sessionId, status: ended, reason } = session;
  assert.equal(said, [[{ sessionId, end: ended, reason }, 'a session has ended']]);
});

test('setting the wall clock does not count as a suspension', async () => {
  const real = Date.now;
  let offMs = 0;
  Date.now = () => real() + offMs;
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  let sweeps = 0;
  const store = {
    isLeader: () => true,
    recoverWork: async () => assert.unreachable(),
    async sweepWork() {
      sweeps += 1;
      if (sweeps === 2) offMs = 3_600_000;
      if (sweeps === 5) end();
      return [];
    },
  };
  const errors: unknown[] = [];
  const failing = {
    ...log,
    error: (facts: unknown) => errors.push(facts),
  } as unknown as typeof log;
  const options = { store, log: failing, now: () => NOW, ...TIMES };
  try {
    await using _sweep = startSweep(options);
    await over;
  } finally {
    Date.now = real;
  }
  assert.equal(errors, []);
});

test.run();
