/**
 * Operations that lock rows of several projects or of many leases run beside each other without a
 * deadlock: a deadlock costs a second for everybody who waits.
 */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../../core/common/ids.ts';
import type { LeasedWork } from '../../../../core/store/types/leases.ts';
import type { Store } from '../../../../core/store/types.ts';
import { must } from '../../../../proto/common/must.ts';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { until } from '../../../support/poll.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { type Bench, HOLDER, LEASE_MS, newSession, openBench, T0 } from '../engines.ts';

const ENGINE = { name: 'postgres', open: openOnPostgres };
const test = suite('core/store/postgres/contention');

/** Two cores on one database with sessions of two projects, all leased by one runner. */
async function withSessions(
  run: (at: { bench: Bench; second: Store; work: LeasedWork[] }) => Promise<void>,
): Promise<void> {
  let dir = '';
  {
    await using bench = await openBench(ENGINE);
    dir = bench.dir;
    const second = await openOnPostgres(bench.dir);
    await using _ = { [Symbol.asyncDispose]: () => second.close() };
    for (const name of ['one', 'two']) {
      const projectId = await bench.project(name, 100);
      for (let count = 0; count < 6; count += 1)
        await bench.store.createSession(newSession(projectId));
    }
    await run({ bench, second, work: await bench.lease('session', 12) });
  }
  assert.is(await deadlocksIn(dir), 0, 'deadlocks');
}

/**
 * Two others hold the counters of the two projects that wait. One of them takes the last place of
 * its project; the other one needs both.
 */
async function leaseBehindOthers(bench: Bench): Promise<void> {
  const [one, two] = [await bench.project('one', 100), await bench.project('two', 100)];
  for (const projectId of [one, two]) await bench.store.createSession(newSession(projectId));
  const sql = postgres(await urlOf(bench.dir), { max: 3, onnotice: () => {} });
  await using _ = { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) };
  const waits = async () => {
    const [row] = await sql`
      SELECT COUNT(*)::INTEGER AS n FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return row?.['n'] === 1;
  };
  const held = Promise.withResolvers<void>();
  const others = Promise.withResolvers<void>();
  await sql`UPDATE queues SET vtime = 0 WHERE kind = 'session' AND project_id = ${one}`;
  await sql`UPDATE queues SET vtime = 1 WHERE kind = 'session' AND project_id = ${two}`;
  const first = sql.begin(async (tx) => {
    await tx`UPDATE queues SET running = cap WHERE kind = 'session' AND project_id = ${one}`;
    await held.promise;
  });
  const second = sql.begin(async (tx) => {
    await tx`SELECT 1 FROM queues WHERE kind = 'session' AND project_id = ${two} FOR UPDATE`;
    await others.promise;
    await tx`SELECT 1 FROM queues WHERE kind = 'session' AND project_id = ${one} FOR UPDATE`;
  });
  await until(async () => {
    const [row] = await sql`
      SELECT COUNT(*)::INTEGER AS n FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle in transaction'`;
    return row?.['n'] === 2;
  });
  const leased = bench.lease('session', 1);
  await until(waits);
  held.resolve();
  await first; // the lease waits for the counters of the second project now
  await until(waits);
  others.resolve();
  await second;
  assert.equal(
    (await leased).map(({ projectId }) => projectId),
    [two],
  );
}

/**
 * The sweep ends two invocations of the project, and then handoffs that are due. A session of the
 * project ends while the sweep waits, between the two, for a row that another program holds.
 */
async function endBesideSweep(bench: Bench, second: Store): Promise<void> {
  const projectId = await bench.project('one', 100);
  const fn = await bench.publish(projectId);
  const { id: sessionId } = newSession(projectId);
  await bench.store.createSession({ ...newSession(projectId), id: sessionId });
  const leaseId = must((await bench.lease('session'))[0], 'work').leaseId;
  await bench.store.startSession({ leaseId, startedAt: T0, at: T0 });
  const help = { id: newId(), sessionId, projectId, instructions: 'help', keyId: 'k' };
  must(await bench.store.createHandoff({ ...help, expiresAt: T0 + 50_000, at: T0 }, 10), 'handoff');
  await bench.accept(projectId, fn, { waitUntil: T0 + 30_000 });
  const later = await bench.accept(projectId, fn, { waitUntil: T0 + 40_000 });
  const sql = postgres(await urlOf(bench.dir), { max: 2, onnotice: () => {} });
  await using _ = { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) };
  const areWaiting = async (count: number) => {
    const [row] = await sql`
      SELECT COUNT(*)::INTEGER AS n FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return row?.['n'] === count;
  };
  const at = T0 + 55_000;
  const both = await sql.begin(async (held) => {
    await held`SELECT 1 FROM sessions WHERE id = ${later.sessionId} FOR UPDATE`;
    const sweeping = second.sweepWork({ at, lostAfterMs: HOUR_MS, max: 100 });
    await until(() => areWaiting(1));
    const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 0, at } as const;
    const ending = bench.store.completeSession({ leaseId, ...end });
    await until(() => areWaiting(2));
    return [sweeping, ending] as const;
  });
  const [swept, hasEnded] = await Promise.all(both);
  assert.equal([swept.length, hasEnded], [2, true]);
  const owned = { id: help.id, sessionId, projectId };
  assert.is((await bench.store.getHandoff(owned))?.status, 'EXPIRED');
}

/** Of ended connections: others report later. */
async function deadlocksIn(dir: string): Promise<number> {
  const sql = postgres(await urlOf(dir), { max: 1, onnotice: () => {} });
  try {
    const [row] = await sql`
      SELECT deadlocks::INTEGER AS n FROM pg_stat_database
      WHERE datname = current_database()`;
    return row?.['n'] as number;
  } finally {
    await sql.end();
  }
}

if (hasPostgres()) {
  test('a recovery runs beside leases, renewals and ends', () =>
    withSessions(async ({ bench, second, work }) => {
      const { store } = bench;
      const leaseIds = work.map(({ leaseId }) => leaseId);
      const projectIds = [...new Set(work.map(({ projectId }) => projectId))];
      const renew = async (ids: string[]) => {
        for (let round = 0; round < 40; round += 1) {
          await second.renewLeases({ ...HOLDER, leaseIds: ids, leaseMs: LEASE_MS, at: T0 });
        }
      };
      const live = async (projectId: string) => {
        for (let round = 0; round < 20; round += 1) {
          const { id } = await second.createSession(newSession(projectId));
          const wanted = { ...HOLDER, kind: 'session', leaseMs: LEASE_MS, at: T0 } as const;
          const [taken] = await store.leaseWork({ ...wanted, leaseIds: [newId()] });
          if (taken) {
            const end = { status: 'COMPLETED', reason: 'over', proxyBytes: 0, at: T0 } as const;
            await store.startSession({ leaseId: taken.leaseId, startedAt: T0, at: T0 });
            await store.completeSession({ leaseId: taken.leaseId, ...end });
          } else await store.releaseSession({ id, projectId, at: T0 });
        }
      };
      let isOver = false;
      const recover = async () => {
        let count = 0;
        while (!isOver) {
          await store.recoverWork({ at: T0, leaseMs: LEASE_MS });
          count += 1;
        }
        return count;
      };
      const recovering = recover();
      const load = [renew(leaseIds), renew(leaseIds.toReversed()), ...projectIds.map(live)];
      await Promise.all(load).finally(() => {
        isOver = true;
      });
      assert.ok((await recovering) > 0, 'recoveries ran');
    }));
}

if (hasPostgres()) {
  test('a lease that waited for counters in vain holds none while it waits again', async () => {
    let dir = '';
    {
      await using bench = await openBench(ENGINE);
      dir = bench.dir;
      await leaseBehindOthers(bench);
    }
    assert.is(await deadlocksIn(dir), 0, 'deadlocks');
  });
}

if (hasPostgres()) {
  test('a session ends with a handoff that is due, beside the sweep', async () => {
    let dir = '';
    {
      await using bench = await openBench(ENGINE);
      dir = bench.dir;
      const second = await openOnPostgres(dir);
      await using _ = { [Symbol.asyncDispose]: () => second.close() };
      await endBesideSweep(bench, second);
    }
    assert.is(await deadlocksIn(dir), 0, 'deadlocks');
  });
}

if (hasPostgres()) {
  test('reports with logs of the same projects wait for each other only at their commits', () =>
    withSessions(async ({ bench, second, work }) => {
      const report = async (store: Store, own: LeasedWork[]) => {
        for (let number = 0; number < 20; number += 1) {
          const chunks = own.map(({ leaseId }) => chunkOf(leaseId, number));
          const leaseIds = own.map(({ leaseId }) => leaseId);
          const answer = await store.reportRunner({ ...REPORT, leaseIds, chunks });
          assert.equal(
            answer.chunks,
            own.map(() => 'kept'),
          );
        }
      };
      const byProject = work.toSorted((a, b) => (a.projectId < b.projectId ? -1 : 1));
      const [even, odd] = [0, 1].map((part) => byProject.filter((_, n) => n % 2 === part));
      await Promise.all([
        report(bench.store, even ?? []),
        report(second, (odd ?? []).toReversed()),
      ]);
      for (const projectId of new Set(work.map((item) => item.projectId))) {
        const { stored } = await bench.store.projectStorage(projectId);
        assert.equal(stored, [{ kind: 'SESSION_LOG', count: 120, bytes: 120 * 3 }]);
      }
    }));
}

if (hasPostgres()) {
  test('of several cores that start, one counts the time in which none ran', async () => {
    await using bench = await openBench(ENGINE);
    const second = await openOnPostgres(bench.dir);
    const projectId = await bench.project('p');
    await bench.listen(projectId);
    const sql = postgres(await urlOf(bench.dir), { max: 2, onnotice: () => {} });
    await bench.store.beat({ at: T0, gapMinMs: HOUR_MS });
    await sql`UPDATE webhooks SET first_failure_at = ${T0}, last_attempt_at = ${T0}`;
    const at = T0 + 2 * HOUR_MS;
    const beats = await sql.begin(async (held) => {
      await held`SELECT 1 FROM heartbeat FOR UPDATE`;
      const both = [bench.store, second].map((store) => store.beat({ at, gapMinMs: HOUR_MS }));
      await until(async () => {
        const waiting = await sql`
          SELECT 1 FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`;
        return waiting.length === 2;
      });
      return Promise.all([both]);
    });
    const gaps = await Promise.all(beats.flat());
    assert.equal(gaps.map(({ gapMs }) => gapMs).sort(), [0, 2 * HOUR_MS]);
    const [row] = await sql`SELECT first_failure_at::FLOAT8 AS at FROM webhooks`;
    assert.is(row?.['at'], T0 + 2 * HOUR_MS);
    await sql.end();
    await second.close();
  });
}

const HOUR_MS = 3_600_000;
const REPORT = {
  ...HOLDER,
  leaseMs: LEASE_MS,
  at: T0,
  lines: [],
  chunksMaxBytes: 1 << 20,
  logQuota: { kinds: ['SESSION_LOG'] as const, maxBytes: 1 << 30 },
  lineLimits: { maxBytes: 1 << 20, linesMax: 20_000, marker: '' },
  recordings: [],
  recordingLimits: {
    quota: { kinds: ['RECORDING'] as const, maxBytes: 1 },
    endedAfter: 0,
  },
};

function chunkOf(leaseId: string, number: number) {
  return { leaseId, number, entries: Buffer.from('log'), count: 1, size: 3 };
}

test.run();
