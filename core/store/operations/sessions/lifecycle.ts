/**
 * The lifecycle of a session that a user started. A session waits with a job, and is RUNNING when
 * its runner reports that the Chrome is ready. A release frees its slot at once; the runner is
 * informed and ends it. States: states.ts.
 */
import { must } from '../../../../proto/common/must.ts';
import type { HandoffOps, SessionLifeOps } from '../../types/sessions.ts';
import { ENDING_GRACE_MS, type Job, type Queue } from '../queue.ts';
import type { InSteps, Steps, Transaction } from '../steps.ts';
import { RELEASED, sessionLimit } from '../texts.ts';
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
      const timeoutMs = wanted.timeoutMs ?? (yield* statements.defaultTimeout(projectId)) * 1_000;
      const { limit, current } = yield* statements.limit(projectId);
      if (current >= limit) throw sessionLimit(limit, current);
      const queueMax = Number.MAX_SAFE_INTEGER; // the limit bounds those that wait, too
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      yield* queue.add({ id, kind: 'session', projectId, ...place });
      crashPoint('create-session');
      yield* sessions.open({ ...wanted, timeoutMs, expiresAt: at + timeoutMs });
      return must(yield* statements.read(wanted), 'session just made');
    },
    *releaseSession(wanted) {
      const { id, at } = wanted;
      const before = yield* statements.read(wanted);
      if (!before) return undefined;
      const isLive = before.status === 'PENDING' || before.status === 'RUNNING';
      if (isLive && (yield* statements.isOfInvocation(id))) return { outcome: 'busy' };
      const job = isLive ? yield* queue.find(id) : undefined;
      if (job && before.status === 'PENDING') {
        yield* sessions.end({ id, status: 'COMPLETED', reason: RELEASED, at });
        yield* queue.drop(job);
      } else if (job && (yield* queue.release(job, at))) {
        wake('releases');
      }
      crashPoint('release-session');
      const session = must(yield* statements.read(wanted), 'session just read');
      return { outcome: 'released', session };
    },
  };
}

function runnerOperations(
  { statements, sessions, queue }: SessionDeps,
  { crashPoint }: Transaction,
): Omit<Operations, UserNames> {
  function* ownJob(leaseId: string): Steps<Job | undefined> {
    const job = yield* queue.findByLease(leaseId);
    return job?.kind === 'session' ? job : undefined;
  }

  return {
    *startSession({ leaseId, ...moment }) {
      const job = yield* ownJob(leaseId);
      if (!job) return false;
      const expiresAt = yield* sessions.startOwn({ ...moment, id: job.id });
      if (expiresAt !== undefined) {
        queue.setExpiry({ id: job.id, expiresAt: expiresAt + ENDING_GRACE_MS });
      }
      crashPoint('start-session');
      return true;
    },
    *completeSession({ leaseId, ...end }) {
      const job = yield* ownJob(leaseId);
      if (!job) return yield* statements.endedBy(leaseId);
      yield* sessions.end({ ...end, id: job.id, leaseId });
      crashPoint('end-session');
      yield* queue.drop(job);
      return true;
    },
    *leasedHandoffs(holder) {
      yield* queue.checkLive(holder);
      return yield* statements.leasedHandoffs(holder);
    },
    *releasedLeases(holder) {
      yield* queue.checkLive(holder);
      return yield* statements.releasedLeases(holder);
    },
  };
}
