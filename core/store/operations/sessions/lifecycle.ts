/**
 * The lifecycle of a session that a user started. A session waits with a job, and is RUNNING when
 * its runner reports that the Chrome is ready. A release frees its slot at once; the runner is
 * informed and ends it. States: states.ts.
 */
import { must } from '../../../../proto/common/must.ts';
import { END_REASONS } from '../../../../proto/sessions/end-reasons.ts';
import type { HandoffOps, SessionLifeOps } from '../../types/sessions.ts';
import { ENDING_GRACE_MS, type Queue } from '../queue.ts';
import type { InSteps, Transaction } from '../steps.ts';
import { sessionLimit } from '../texts.ts';
import type { SessionStatements, SessionTransitions } from './sessions.ts';

/** `locateSession` is one statement of the engine. */
type Operations = InSteps<
  Omit<SessionLifeOps, 'locateSession'> & Pick<HandoffOps, 'leasedHandoffs'>
>;
type UserNames = 'createSession' | 'releaseSession';
type SessionDeps = { statements: SessionStatements; sessions: SessionTransitions; queue: Queue };

export function sessionLifecycle(deps: SessionDeps, tx: Transaction): Operations {
  return { ...userOperations(deps, tx), ...runnerOperations(deps, tx) };
}

function userOperations(
  { statements, sessions, queue }: SessionDeps,
  { crashPoint, wake }: Transaction,
): Pick<Operations, UserNames> {
  return {
    *createSession(wanted) {
      const { id, projectId, waitUntil, at, traceparent } = wanted;
      // the limit is counted behind the lock of the counters
      const counters = queue.countersOf({ kind: 'session', projectId });
      const { limit, current, defaultTimeout } = yield* statements.limit(projectId);
      if (current >= limit) throw sessionLimit(limit, current);
      const timeoutMs = wanted.timeoutMs ?? defaultTimeout * 1_000;
      const queueMax = Number.MAX_SAFE_INTEGER; // the limit bounds those that wait, too
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      yield* queue.add({ id, kind: 'session', projectId, ...place }, counters);
      crashPoint('create-session');
      const row = yield* sessions.open({ ...wanted, timeoutMs, expiresAt: at + timeoutMs });
      return { ...row, params: wanted.params, isReleased: false };
    },
    *releaseSession(wanted) {
      const { id, at } = wanted;
      const before = yield* statements.read(wanted);
      if (!before) return undefined;
      const isLive = before.status === 'PENDING' || before.status === 'RUNNING';
      if (isLive && (yield* statements.isOfInvocation(id))) return { outcome: 'busy' };
      const job = isLive ? yield* queue.find(id) : undefined;
      const hasEnded = job !== undefined && before.status === 'PENDING';
      if (hasEnded) {
        const { projectId } = wanted;
        const { released: reason } = END_REASONS;
        yield* sessions.end({ id, projectId, status: 'COMPLETED', reason, at });
        queue.drop(job);
      } else if (job && (yield* queue.release(job, at))) {
        wake('releases');
      }
      crashPoint('release-session');
      const session = must(yield* statements.read(wanted), 'session just read');
      return { outcome: 'released', session, hasEnded };
    },
  };
}

function runnerOperations(
  { statements, sessions, queue }: SessionDeps,
  { crashPoint }: Transaction,
): Omit<Operations, UserNames> {
  return {
    *startSession({ leaseId, startedAt: reportedAt, at }) {
      const [found, pending] = [queue.findByLease(leaseId), statements.pendingUnder(leaseId)];
      const job = yield* found;
      if (job?.kind !== 'session') return false;
      const session = yield* pending;
      if (session) {
        const { id, projectId } = job;
        const startedAt = Math.max(reportedAt, session.createdAt);
        const expiresAt = startedAt + session.timeoutMs;
        yield* sessions.start({ id, projectId, startedAt, expiresAt, at });
        queue.setExpiry({ id, expiresAt: expiresAt + ENDING_GRACE_MS });
      }
      crashPoint('start-session');
      return true;
    },
    *completeSession({ leaseId, ...end }) {
      const job = yield* queue.findByLease(leaseId);
      if (job?.kind !== 'session') return yield* statements.endedBy(leaseId);
      const { id, projectId } = job;
      yield* sessions.end({ ...end, id, projectId, leaseId });
      crashPoint('end-session');
      queue.drop(job);
      return true;
    },
    *leasedHandoffs(holder) {
      yield* queue.liveInstance(holder);
      return yield* statements.leasedHandoffs(holder);
    },
    *releasedLeases(holder) {
      yield* queue.liveInstance(holder);
      return yield* statements.releasedLeases(holder);
    },
  };
}
