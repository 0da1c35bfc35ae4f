/**
 * Leases in SQLite. A job is `ready`, or `running` under one lease of one live runner instance.
 * Whoever takes work moves it to RUNNING in the same operation; a lease that ends without an
 * outcome ends its work FAILED: a handler has side effects that we cannot see, so it is never run
 * twice.
 */
import { Fault } from '../../../proto/errors.ts';
import { must } from '../../../proto/must.ts';
import type { Holder, LeasedInvocation, LeasedWork, LeaseOps } from '../types/leases.ts';
import { buildMoves } from './builds.ts';
import { invocationMoves } from './invocations.ts';
import { JOB_COLUMNS, type JobRow, queueOf } from './queue.ts';
import type { Tx } from './tx.ts';

/** From the lease of a build. Source: reference.md 2.4. */
const BUILD_TIMEOUT_MS = 600_000;
/** Ours: the runner ends what is over; core ends what such a runner forgot. */
const EXPIRY_GRACE_MS = 30_000;

const LOST = { code: 'INTERNAL_ERROR', message: 'The runner was lost.' } as const;

export function leaseOps(tx: Tx): LeaseOps {
  return { ...holderOps(tx), ...workOps(tx) };
}

type HolderNames = 'registerRunner' | 'renewLeases' | 'recoverWork' | 'sweepWork' | 'findLease';

function holderOps(tx: Tx): Pick<LeaseOps, HolderNames> {
  const { db } = tx;
  const moves = movesOf(tx);
  const isLive = liveness(tx);
  const register = db.prepare<[object]>(`
    INSERT INTO runners (id, instance_id, updated_at) VALUES (@runnerId, @instanceId, @at)
    ON CONFLICT (id) DO UPDATE SET instance_id = @instanceId, updated_at = @at`);
  // Index jobs_by_runner.
  const ofOthers = db.prepare<[object], JobRow>(`
    SELECT ${JOB_COLUMNS} FROM jobs
    WHERE state = 'running' AND runner_id = @runnerId AND instance_id <> @instanceId`);
  const renew = db.prepare<[object]>(`
    UPDATE jobs SET lease_until = @leaseUntil
    WHERE lease_id = @leaseId AND runner_id = @runnerId AND instance_id = @instanceId`);
  const lost = db.prepare<[object], JobRow>(`
    SELECT ${JOB_COLUMNS} FROM jobs WHERE state = 'running' AND lease_until < @at LIMIT @max`);
  const expired = db.prepare<[object], JobRow>(`
    SELECT ${JOB_COLUMNS} FROM jobs WHERE expires_at < @at LIMIT @max`);
  const grace = db.prepare<[number]>(`
    UPDATE jobs SET lease_until = MAX(lease_until, ?) WHERE state = 'running'`);
  const forget = db.prepare<[]>('UPDATE queues SET ready = 0, running = 0');
  const recount = db.prepare<[]>(`
    UPDATE queues SET ready = counted.ready, running = counted.running
    FROM (SELECT kind, project_id, SUM(state = 'ready') AS ready, SUM(state = 'running') AS running
      FROM jobs GROUP BY kind, project_id) AS counted
    WHERE queues.kind = counted.kind AND queues.project_id = counted.project_id`);
  const byLease = jobByLease(tx);

  return {
    recoverWork({ at, leaseMs }) {
      grace.run(at + leaseMs);
      forget.run();
      recount.run();
    },
    registerRunner(runner) {
      register.run(runner);
      const held = ofOthers.all(runner);
      for (const job of held) moves.fail(job, LOST, runner.at);
      return held.length;
    },
    renewLeases(wanted) {
      if (!isLive(wanted)) throw superseded();
      const leaseUntil = wanted.at + wanted.leaseMs;
      return wanted.leaseIds.filter(
        (leaseId) => renew.run({ ...wanted, leaseId, leaseUntil }).changes > 0,
      );
    },
    findLease(leaseId) {
      const job = byLease(leaseId);
      return job && { kind: job.kind, id: job.id, projectId: job.projectId };
    },
    sweepWork(wanted) {
      const gone = lost.all(wanted);
      for (const job of gone) moves.fail(job, LOST, wanted.at);
      const over = expired.all({ ...wanted, max: wanted.max - gone.length });
      for (const job of over) {
        const message =
          job.state === 'ready' ? 'No runner was free in time.' : 'Its time was over.';
        moves.fail(job, { code: 'TIMED_OUT', message }, wanted.at);
      }
      return gone.length + over.length;
    },
  };
}

function workOps(tx: Tx): Omit<LeaseOps, HolderNames> {
  const { db, crashPoint } = tx;
  const moves = movesOf(tx);
  const isLive = liveness(tx);
  const byLease = jobByLease(tx);
  const endedInvocation = db.prepare<[string]>(
    'SELECT 1 FROM invocations WHERE ended_lease_id = ?',
  );
  const endedBuild = db.prepare<[string]>('SELECT 1 FROM builds WHERE ended_lease_id = ?');

  return {
    leaseWork({ kind, leaseIds, leaseMs, at, ...holder }) {
      if (!isLive(holder)) throw superseded();
      const work: LeasedWork[] = [];
      for (const leaseId of leaseIds) {
        const job = moves.queue.take(kind, { ...holder, leaseId, leaseUntil: at + leaseMs });
        if (!job) break;
        work.push(moves.start(job, leaseId, at));
      }
      if (work.length > 0) crashPoint('lease-work');
      return work;
    },
    putBackWork({ leaseIds, waitUntil, at }) {
      for (const leaseId of leaseIds) {
        const job = byLease(leaseId);
        if (!job) continue;
        if (job.kind === 'invocation') moves.invocations.putBack(job.id, at);
        else moves.builds.putBack(job.id, at);
        moves.queue.putBack(job, waitUntil);
      }
    },
    completeInvocation({ leaseId, ...end }) {
      const job = byLease(leaseId);
      if (job?.kind !== 'invocation') return endedInvocation.get(leaseId) !== undefined;
      moves.invocations.end({ ...end, id: job.id, leaseId });
      moves.queue.drop(job);
      return true;
    },
    completeBuild({ leaseId, ...end }) {
      const job = byLease(leaseId);
      if (job?.kind !== 'build') return endedBuild.get(leaseId) !== undefined;
      moves.builds.end({ ...end, id: job.id, leaseId });
      moves.queue.drop(job);
      return true;
    },
  };
}

/** The moves of both kinds of work. */
function movesOf(tx: Tx) {
  const queue = queueOf(tx);
  const invocations = invocationMoves(tx);
  const builds = buildMoves(tx);
  const details = tx.db.prepare<
    [string],
    Pick<LeasedInvocation, 'functionName' | 'bundleBlobId' | 'bundleSha256' | 'sessionParams'>
  >(`
    SELECT functions.name AS functionName, blobs.id AS bundleBlobId, blobs.sha256 AS bundleSha256,
      sessions.params AS sessionParams
    FROM invocations
    JOIN sessions ON sessions.id = invocations.session_id
    JOIN functions ON functions.id = invocations.function_id
    JOIN versions ON versions.id = invocations.version_id
    JOIN builds ON builds.id = versions.build_id
    JOIN blobs ON blobs.id = builds.bundle_blob_id
    WHERE invocations.id = ?`);

  return {
    queue,
    invocations,
    builds,
    /** Moves a job that was just taken to RUNNING. */
    start({ id, kind, projectId }: JobRow, leaseId: string, at: number): LeasedWork {
      if (kind === 'build') {
        const expiresAt = at + BUILD_TIMEOUT_MS;
        const { entrypoint, archiveBlobId } = builds.start({ id, at, expiresAt });
        queue.expireAt(id, expiresAt + EXPIRY_GRACE_MS);
        const timeoutMs = BUILD_TIMEOUT_MS;
        return { kind, leaseId, id, projectId, entrypoint, archiveBlobId, timeoutMs };
      }
      const row = invocations.start(id, at);
      queue.expireAt(id, row.expiresAt + EXPIRY_GRACE_MS);
      const { sessionId, versionId, params, timeoutMs, region } = row;
      const rest = must(details.get(id), 'function, version and bundle of an invocation');
      const ids = { leaseId, id, projectId, sessionId, versionId };
      return { kind, ...ids, ...rest, params, timeoutMs, region };
    },
    /** Ends a job's work without an outcome from its runner. */
    fail(
      job: JobRow,
      cause: { code: 'INTERNAL_ERROR' | 'TIMED_OUT'; message: string },
      at: number,
    ) {
      const end = { id: job.id, outcome: { kind: 'failure', cause }, leaseId: null, at } as const;
      if (job.kind === 'invocation') invocations.end({ ...end, sessionStartedAt: null });
      else builds.end(end);
      queue.drop(job);
    },
  };
}

function jobByLease({ db }: Tx): (leaseId: string) => JobRow | undefined {
  const select = db.prepare<[string], JobRow>(`SELECT ${JOB_COLUMNS} FROM jobs WHERE lease_id = ?`);
  return (leaseId) => select.get(leaseId);
}

function liveness({ db }: Tx): (holder: Holder) => boolean {
  const select = db.prepare<[object]>(
    'SELECT 1 FROM runners WHERE id = @runnerId AND instance_id = @instanceId',
  );
  return ({ runnerId, instanceId }) => select.get({ runnerId, instanceId }) !== undefined;
}

function superseded(): Fault {
  return new Fault('LEASE_LOST', 'This runner instance is not registered, or a newer one is.');
}
