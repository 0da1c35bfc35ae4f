/**
 * The life of a session that a user started, in SQLite. It waits with a job, and is RUNNING from
 * the moment in which its runner says that the Chrome is ready. A release frees its slot at once;
 * the runner hears of it and ends it.
 *   PENDING --start--> RUNNING --complete--> COMPLETED | TIMED_OUT | ERROR
 *   PENDING --release--> COMPLETED;  RUNNING --release--> RUNNING, told to its runner
 */

import { must } from '../../../../proto/common/must.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { LocatedSession, SessionLifeOps } from '../../types/sessions.ts';
import type { Tx } from '../engine/transaction.ts';
import { ENDING_GRACE_MS, type JobRow, jobByLease, onlyLive, queueOf } from './queue.ts';
import { sessionMoves, sessionReader } from './sessions.ts';

type UserNames = 'createSession' | 'releaseSession' | 'locateSession';

export function sessionLifeOps(tx: Tx): SessionLifeOps {
  return { ...userOps(tx), ...runnerOps(tx) };
}

function userOps(tx: Tx): Pick<SessionLifeOps, UserNames> {
  const { db, crashPoint, wake } = tx;
  const queue = queueOf(tx);
  const sessions = sessionMoves(tx);
  const limits = limitsOf(tx);
  const read = sessionReader(tx);
  const ofInvocation = db.prepare<[string]>('SELECT 1 FROM invocations WHERE session_id = ?');
  const located = db.prepare<[string], Omit<LocatedSession, 'isReleased'> & { released: number }>(`
    SELECT sessions.project_id AS projectId, sessions.status AS status,
      runners.address AS address, jobs.released_at IS NOT NULL AS released
    FROM sessions
    LEFT JOIN invocations ON invocations.session_id = sessions.id
    LEFT JOIN jobs ON jobs.id = COALESCE(invocations.id, sessions.id)
    LEFT JOIN runners ON runners.id = jobs.runner_id AND runners.instance_id = jobs.instance_id
    WHERE sessions.id = ?`);

  return {
    createSession(wanted) {
      const { id, projectId, waitUntil, at, keepAlive, traceparent } = wanted;
      const timeoutMs = wanted.timeoutMs ?? limits.timeoutMs(projectId);
      limits.check(projectId);
      const queueMax = Number.MAX_SAFE_INTEGER; // the limit bounds those that wait, too
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      queue.add({ id, kind: 'session', projectId, ...place });
      crashPoint('create-session');
      const expiresAt = at + timeoutMs;
      sessions.open({ ...wanted, timeoutMs, keepAlive: keepAlive ? 1 : 0, expiresAt });
      return must(read(wanted), 'session just made');
    },
    releaseSession(wanted) {
      const { id, at } = wanted;
      const before = read(wanted);
      if (!before) return undefined;
      const isLive = before.status === 'PENDING' || before.status === 'RUNNING';
      if (isLive && ofInvocation.get(id)) return { outcome: 'busy' };
      const job = isLive ? queue.find(id) : undefined;
      if (job && before.status === 'PENDING') {
        sessions.end({ id, status: 'COMPLETED', reason: 'It was released.', at });
        queue.drop(job);
      } else if (job && queue.release(job, { at, endBy: at + ENDING_GRACE_MS })) {
        wake('releases');
      }
      crashPoint('release-session');
      const session = must(read(wanted), 'session just read');
      return { outcome: 'released', session };
    },
    locateSession(id) {
      const found = located.get(id);
      if (!found) return undefined;
      const { released, ...rest } = found;
      return { ...rest, isReleased: released === 1 };
    },
  };
}

function runnerOps(tx: Tx): Omit<SessionLifeOps, UserNames> {
  const { db, crashPoint } = tx;
  const queue = queueOf(tx);
  const sessions = sessionMoves(tx);
  const byLease = jobByLease(tx);
  const checkLive = onlyLive(tx);
  const ended = db.prepare<[string]>('SELECT 1 FROM sessions WHERE ended_lease_id = ?');
  // Index jobs_released.
  const released = db
    .prepare<[object], string>(`
      SELECT lease_id FROM jobs
      WHERE released_at IS NOT NULL AND runner_id = @runnerId AND instance_id = @instanceId`)
    .pluck();
  const ownJob = (leaseId: string): JobRow | undefined => {
    const job = byLease(leaseId);
    return job?.kind === 'session' ? job : undefined;
  };

  return {
    startSession({ leaseId, ...moment }) {
      const job = ownJob(leaseId);
      if (!job) return false;
      const expiresAt = sessions.startOwn({ ...moment, id: job.id });
      if (expiresAt !== undefined) queue.expireAt(job.id, expiresAt + ENDING_GRACE_MS);
      crashPoint('start-session');
      return true;
    },
    completeSession({ leaseId, ...end }) {
      const job = ownJob(leaseId);
      if (!job) return ended.get(leaseId) !== undefined;
      sessions.end({ ...end, id: job.id, leaseId });
      crashPoint('end-session');
      queue.drop(job);
      return true;
    },
    releasedLeases(holder) {
      checkLive(holder);
      return released.all(holder);
    },
  };
}

/** What a project may have at once, and how long. */
function limitsOf({ db }: Tx) {
  const project = db.prepare<[string], { concurrency: number; defaultTimeout: number }>(`
    SELECT concurrency, default_timeout AS defaultTimeout FROM projects WHERE id = ?`);
  // Index jobs_in_limit.
  const live = db
    .prepare<[string], number>(`
      SELECT COUNT(*) FROM jobs
      WHERE project_id = ? AND kind = 'session' AND released_at IS NULL`)
    .pluck();
  return {
    timeoutMs: (projectId: string) =>
      must(project.get(projectId), 'project of a key').defaultTimeout * 1_000,
    /** Throws CONCURRENCY_LIMIT with limit and count: proto/spec/rest.md 4. */
    check(projectId: string): void {
      const { concurrency: limit } = must(project.get(projectId), 'project of a key');
      const current = live.get(projectId) ?? 0;
      if (current < limit) return;
      const counts = `(limit ${limit}, currently ${current})`;
      const message =
        `You have exceeded your max concurrent sessions limit ${counts}. ` +
        'A slot is free as soon as a session ends or is released.';
      throw new Fault('CONCURRENCY_LIMIT', message, { limit, current });
    },
  };
}
