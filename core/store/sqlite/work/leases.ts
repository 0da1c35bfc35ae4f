/**
 * Leases in SQLite. A job is `ready`, or `running` under one lease of one live runner instance. Its
 * work stays PENDING until that instance renews the lease: only then it is known to have come, and
 * may be run. A lease that ends before is undone, and the work waits again; one that ends after it
 * without an outcome ends its work FAILED: a handler has side effects that we cannot see, so it is
 * never run twice. A session is RUNNING later, when its Chrome is ready: session-lifecycle.ts.
 *   ready --lease--> offered --renew--> running --complete--> (gone);  running --silence--> (gone)
 *   offered --silence, caller left--> ready
 */
import type { LeasedWork, LeaseOps } from '../../types/leases.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { BUILD_TIMEOUT_MS, buildMoves } from './builds.ts';
import { outcomeFor } from './cancel.ts';
import { invocationMoves } from './invocations.ts';
import { offers } from './offers.ts';
import {
  ENDING_GRACE_MS,
  JOB_COLUMNS,
  type JobRow,
  jobByLease,
  onlyLive,
  queueOf,
} from './queue.ts';
import { sessionMoves } from './sessions.ts';

const LOST = { code: 'INTERNAL_ERROR', message: 'The runner was lost.' } as const;

export function leaseOps(tx: Tx): LeaseOps {
  return { ...holderOps(tx), ...workOps(tx) };
}

type HolderNames = 'registerRunner' | 'renewLeases' | 'recoverWork' | 'sweepWork' | 'findLease';

function holderOps(tx: Tx): Pick<LeaseOps, HolderNames> {
  const { db } = tx;
  const moves = movesOf(tx);
  const checkLive = onlyLive(tx);
  const register = db.prepare<[object]>(`
    INSERT INTO runners (id, instance_id, address, updated_at)
    VALUES (@runnerId, @instanceId, @address, @at)
    ON CONFLICT (id) DO UPDATE
      SET instance_id = @instanceId, address = @address, updated_at = @at`);
  // Index jobs_by_runner.
  const ofOthers = db.prepare<[object], JobRow>(`
    SELECT ${JOB_COLUMNS} FROM jobs
    WHERE state = 'running' AND runner_id = @runnerId AND instance_id <> @instanceId`);
  const renew = db.prepare<[object], JobRow>(`
    UPDATE jobs SET lease_until = @leaseUntil
    WHERE lease_id = @leaseId AND runner_id = @runnerId AND instance_id = @instanceId
    RETURNING ${JOB_COLUMNS}`);
  const lost = db.prepare<[object], JobRow>(`
    SELECT ${JOB_COLUMNS} FROM jobs WHERE state = 'running' AND lease_until < @at LIMIT @max`);
  const expired = db.prepare<[object], JobRow>(`
    SELECT ${JOB_COLUMNS} FROM jobs WHERE expires_at < @at LIMIT @max`);
  // The last beat is all that is known of the absence: a clock that was set looks like a long one.
  const grace = db.prepare<[object]>(`
    UPDATE jobs SET lease_until = MAX(lease_until, @leaseUntil),
      expires_at = expires_at + MAX(0, @at - COALESCE((SELECT at FROM heartbeat), @at))
    WHERE state = 'running'`);
  const forget = db.prepare<[]>('UPDATE queues SET ready = 0, running = 0');
  const recount = db.prepare<[]>(`
    UPDATE queues SET ready = counted.ready, running = counted.running
    FROM (SELECT kind, project_id, SUM(state = 'ready') AS ready, SUM(state = 'running') AS running
      FROM jobs GROUP BY kind, project_id) AS counted
    WHERE queues.kind = counted.kind AND queues.project_id = counted.project_id`);
  const byLease = jobByLease(tx);

  return {
    recoverWork({ at, leaseMs }) {
      grace.run({ at, leaseUntil: at + leaseMs });
      forget.run();
      recount.run();
    },
    registerRunner(runner) {
      register.run({ ...runner, address: runner.address ?? null });
      return ofOthers.all(runner).filter((job) => moves.lose(job, runner.at)).length;
    },
    renewLeases(wanted) {
      checkLive(wanted);
      const leaseUntil = wanted.at + wanted.leaseMs;
      return wanted.leaseIds.filter((leaseId) => {
        const job = renew.get({ ...wanted, leaseId, leaseUntil });
        if (job) moves.start(job, wanted.at);
        return job !== undefined;
      });
    },
    findLease(leaseId) {
      const job = byLease(leaseId);
      return job && { kind: job.kind, id: job.id, projectId: job.projectId };
    },
    sweepWork(wanted) {
      const over = expired.all(wanted);
      for (const job of over) moves.fail(job, overdue(job, moves.isWaiting(job)), wanted.at);
      const gone = lost.all({ ...wanted, max: wanted.max - over.length });
      return over.length + gone.filter((job) => moves.lose(job, wanted.at)).length;
    },
  };
}

function workOps(tx: Tx): Omit<LeaseOps, HolderNames> {
  const { db, crashPoint } = tx;
  const moves = movesOf(tx);
  const checkLive = onlyLive(tx);
  const byLease = jobByLease(tx);
  const endedInvocation = db.prepare<[string]>(
    'SELECT 1 FROM invocations WHERE ended_lease_id = ?',
  );
  const endedBuild = db.prepare<[string]>('SELECT 1 FROM builds WHERE ended_lease_id = ?');

  return {
    leaseWork({ kind, leaseIds, places = 0, leaseMs, at, ...holder }) {
      checkLive(holder);
      const work: LeasedWork[] = [];
      for (const leaseId of leaseIds) {
        const lease = { ...holder, leaseId, leaseUntil: at + leaseMs, places };
        const job = moves.queue.take(kind, lease);
        if (!job) break;
        work.push(moves.offer(job, leaseId));
      }
      if (work.length > 0) crashPoint('lease-work');
      return work;
    },
    putBackWork(leaseIds) {
      for (const leaseId of leaseIds) {
        const job = byLease(leaseId);
        if (job && moves.isWaiting(job)) moves.queue.putBack(job);
      }
    },
    completeInvocation({ leaseId, ...end }) {
      const job = byLease(leaseId);
      if (job?.kind !== 'invocation') return endedInvocation.get(leaseId) !== undefined;
      moves.start(job, end.at); // whoever has an outcome has run it
      const outcome = outcomeFor(job, end.outcome);
      moves.invocations.end({ ...end, id: job.id, leaseId, outcome });
      moves.queue.drop(job);
      return true;
    },
    completeBuild({ leaseId, ...end }) {
      const job = byLease(leaseId);
      if (job?.kind !== 'build') return endedBuild.get(leaseId) !== undefined;
      moves.start(job, end.at); // whoever has an outcome has run it
      moves.builds.end({ ...end, id: job.id, leaseId });
      moves.queue.drop(job);
      return true;
    },
  };
}

type Cause = { code: 'INTERNAL_ERROR' | 'TIMED_OUT'; message: string };

/** A session that nobody could start has failed: its own time has not begun. */
function overdue({ kind, state, releasedAt }: JobRow, isWaiting: boolean): Cause {
  if (releasedAt !== null) {
    return { code: 'INTERNAL_ERROR', message: 'Its runner did not end it in time.' };
  }
  if (!isWaiting) return { code: 'TIMED_OUT', message: 'Its time was over.' };
  if (kind !== 'session') return { code: 'TIMED_OUT', message: 'No runner was free in time.' };
  const isOpening = state === 'running';
  const message = isOpening ? 'Its browser was not ready in time.' : 'No runner was free in time.';
  return { code: 'INTERNAL_ERROR', message };
}

/** The moves of every kind of work. */
const movesOf = preparedOnce((tx: Tx) => {
  const queue = queueOf(tx);
  const invocations = invocationMoves(tx);
  const builds = buildMoves(tx);
  const sessions = sessionMoves(tx);

  const isWaiting = ({ kind, id }: JobRow) =>
    ({ invocation: invocations, build: builds, session: sessions })[kind].isPending(id);

  /** Ends a job's work without an outcome from its runner. */
  function fail(job: JobRow, cause: Cause, at: number): void {
    const end = { id: job.id, outcome: { kind: 'failure', cause }, leaseId: null, at } as const;
    const status = cause.code === 'TIMED_OUT' ? 'TIMED_OUT' : 'ERROR';
    if (job.kind === 'invocation') {
      const outcome = outcomeFor(job, end.outcome);
      invocations.end({ ...end, outcome, sessionStartedAt: null });
    } else if (job.kind === 'build') builds.end(end);
    else sessions.end({ id: job.id, status, reason: cause.message, at });
    queue.drop(job);
  }

  return {
    queue,
    invocations,
    builds,
    offer: offers(tx),
    isWaiting,
    fail,
    /** Its runner has it: to RUNNING, once. A session is RUNNING when its runner says so. */
    start({ id, kind }: JobRow, at: number): void {
      if (kind === 'session') return;
      const expiresAt =
        kind === 'invocation'
          ? invocations.start(id, at)
          : builds.start({ id, at, expiresAt: at + BUILD_TIMEOUT_MS });
      if (expiresAt !== undefined) queue.expireAt(id, expiresAt + ENDING_GRACE_MS);
    },
    /** Its lease is over: true when that ended the work, false when it waits again. */
    lose(job: JobRow, at: number): boolean {
      const hasRun = !isWaiting(job);
      if (hasRun) fail(job, LOST, at);
      else queue.putBack(job);
      return hasRun;
    },
  };
});
