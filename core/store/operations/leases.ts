/**
 * Leases. A job is `ready`, or `running` under one lease of one live runner instance. Its work
 * stays PENDING until that instance renews the lease, which confirms the arrival of the offer. A
 * lease that expires before the first renewal is undone, and the work waits again. A lease that
 * expires later without an outcome fails its work: a handler has side effects that core cannot see,
 * so it never runs twice. A session is RUNNING when its Chrome is ready: sessions/lifecycle.ts.
 * States: LEASE in states.ts.
 *   ready --lease--> offered --renew--> running --complete--> gone;  running --silence--> gone
 *   offered --silence, caller left--> ready
 */
import type { Holder, LeasedWork, LeaseOps } from '../types/leases.ts';
import type { BuildTransitions } from './builds.ts';
import { outcomeFor } from './functions/cancel.ts';
import type { InvocationTransitions } from './invocations.ts';
import { ENDING_GRACE_MS, type Job, type Queue } from './queue.ts';
import type { HandoffTransitions } from './sessions/handoffs.ts';
import type { SessionTransitions } from './sessions/sessions.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';
import {
  BROWSER_NOT_READY,
  type Cause,
  NO_RUNNER,
  NOT_ENDED_IN_TIME,
  RUNNER_LOST,
  TIME_OVER,
} from './texts.ts';
import type { workItems } from './work-items.ts';

export type LeaseStatements = {
  /** The instance is the runner's newest. */
  register(runner: Holder & { address: string | null; at: number }): void;
  /** Jobs that run under leases of other instances of the runner. */
  heldByOthers(holder: Holder): Read<Job[]>;
  /** Undefined when the instance does not hold it. */
  renew(lease: Holder & { leaseId: string; leaseUntil: number }): Read<Job | undefined>;
  /** Jobs whose lease has expired. */
  unrenewed(wanted: { at: number; max: number }): Read<Job[]>;
  /** Jobs whose own time has expired, leased or not. */
  expired(wanted: { at: number; max: number }): Read<Job[]>;
  /**
   * Prolongs every lease to `leaseUntil` at least, and every running job's time by the time since
   * the last heartbeat: a changed clock looks like a long absence. Recounts all queues.
   */
  recover(wanted: { at: number; leaseUntil: number }): void;
};

type LeaseDeps = {
  leases: LeaseStatements;
  queue: Queue;
  invocations: InvocationTransitions;
  builds: BuildTransitions;
  sessions: SessionTransitions;
  handoffs: HandoffTransitions;
};
type HolderNames = 'registerRunner' | 'renewLeases' | 'recoverWork' | 'sweepWork' | 'findLease';

/** The operations of runner instances, and the sweep. */
export function holderOperations(deps: LeaseDeps): InSteps<Pick<LeaseOps, HolderNames>> {
  const { leases, handoffs, queue } = deps;
  const { start, lose, fail, isWaiting } = jobTransitions(deps);

  /** Returns the number of jobs that ended; the others wait again. */
  function* loseAll(jobs: Job[], at: number): Steps<number> {
    let ended = 0;
    for (const job of jobs) if (yield* lose(job, at)) ended += 1;
    return ended;
  }

  return {
    // biome-ignore lint/correctness/useYield: it only writes
    *recoverWork({ at, leaseMs }) {
      leases.recover({ at, leaseUntil: at + leaseMs });
    },
    *registerRunner(runner) {
      leases.register({ ...runner, address: runner.address ?? null });
      return yield* loseAll(yield* leases.heldByOthers(runner), runner.at);
    },
    *renewLeases({ leaseIds, leaseMs, at, ...holder }) {
      yield* queue.checkLive(holder);
      const renewed: string[] = [];
      for (const leaseId of leaseIds) {
        const job = yield* leases.renew({ ...holder, leaseId, leaseUntil: at + leaseMs });
        if (!job) continue;
        yield* start(job, at);
        renewed.push(leaseId);
      }
      return renewed;
    },
    *findLease(leaseId) {
      const job = yield* queue.findByLease(leaseId);
      return job && { kind: job.kind, id: job.id, projectId: job.projectId };
    },
    *sweepWork({ at, max }) {
      const over = yield* leases.expired({ at, max });
      for (const job of over) yield* fail(job, overdue(job, yield* isWaiting(job)), at);
      yield* handoffs.expireDue({ at, max });
      const unrenewed = yield* leases.unrenewed({ at, max: max - over.length });
      return over.length + (yield* loseAll(unrenewed, at));
    },
  };
}

/** The lease of work, and its outcomes. */
export function outcomeOperations(
  deps: LeaseDeps & { itemOf: ReturnType<typeof workItems> },
  { crashPoint }: Transaction,
): InSteps<Omit<LeaseOps, HolderNames>> {
  const { queue, invocations, builds, itemOf } = deps;
  const { start, isWaiting } = jobTransitions(deps);

  return {
    *leaseWork({ kind, leaseIds, places = 0, leaseMs, at, ...holder }) {
      yield* queue.checkLive(holder);
      const work: LeasedWork[] = [];
      for (const leaseId of leaseIds) {
        const lease = { ...holder, leaseId, leaseUntil: at + leaseMs, places };
        const job = yield* queue.lease(kind, lease);
        if (!job) break;
        work.push(yield* itemOf(job, leaseId));
      }
      if (work.length > 0) crashPoint('lease-work');
      return work;
    },
    *putBackWork(leaseIds) {
      for (const leaseId of leaseIds) {
        const job = yield* queue.findByLease(leaseId);
        if (job && (yield* isWaiting(job))) queue.putBack(job);
      }
    },
    *completeInvocation({ leaseId, ...end }) {
      const job = yield* queue.findByLease(leaseId);
      if (job?.kind !== 'invocation') return yield* invocations.endedBy(leaseId);
      yield* start(job, end.at); // a runner that has an outcome has run it
      const outcome = outcomeFor(job, end.outcome);
      yield* invocations.end({ ...end, id: job.id, leaseId, outcome });
      yield* queue.drop(job);
      return true;
    },
    *completeBuild({ leaseId, ...end }) {
      const job = yield* queue.findByLease(leaseId);
      if (job?.kind !== 'build') return yield* builds.endedBy(leaseId);
      yield* start(job, end.at); // a runner that has an outcome has run it
      yield* builds.end({ ...end, id: job.id, leaseId });
      yield* queue.drop(job);
      return true;
    },
  };
}

/** A session that did not start has failed: its own time has not begun. */
function overdue({ kind, state, releasedAt }: Job, isWaiting: boolean): Cause {
  if (releasedAt !== null) return NOT_ENDED_IN_TIME;
  if (!isWaiting) return TIME_OVER;
  if (kind !== 'session') return { code: 'TIMED_OUT', message: NO_RUNNER };
  const isOpening = state === 'running';
  return { code: 'INTERNAL_ERROR', message: isOpening ? BROWSER_NOT_READY : NO_RUNNER };
}

/** The transitions of a job, with those of its work of any kind. */
function jobTransitions({ queue, invocations, builds, sessions }: Omit<LeaseDeps, 'leases'>) {
  const pending = {
    invocation: invocations.isPending,
    build: builds.isPending,
    session: sessions.isPending,
  };
  const isWaiting = ({ kind, id }: Job): Read<boolean> => pending[kind](id);

  /** Ends a job's work without an outcome from its runner. */
  function* fail(job: Job, cause: Cause, at: number): Steps<void> {
    const { id, kind } = job;
    const end = { id, outcome: { kind: 'failure', cause }, leaseId: null, at } as const;
    switch (kind) {
      case 'invocation': {
        const outcome = outcomeFor(job, end.outcome);
        yield* invocations.end({ ...end, outcome, sessionStartedAt: null });
        break;
      }
      case 'build':
        yield* builds.end(end);
        break;
      case 'session': {
        const status = cause.code === 'TIMED_OUT' ? 'TIMED_OUT' : 'ERROR';
        yield* sessions.end({ id, status, reason: cause.message, at });
      }
    }
    yield* queue.drop(job);
  }

  return {
    isWaiting,
    fail,
    /** The runner has received it: to RUNNING, once. A session is RUNNING at StartSession. */
    *start({ id, kind }: Job, at: number): Steps<void> {
      if (kind === 'session') return;
      const expiresAt = yield* (kind === 'invocation' ? invocations : builds).start(id, at);
      if (expiresAt === undefined) return;
      queue.setExpiry({ id, expiresAt: expiresAt + ENDING_GRACE_MS });
    },
    /** Its lease has expired: true when the work ended, false when it waits again. */
    *lose(job: Job, at: number): Steps<boolean> {
      if (yield* isWaiting(job)) {
        queue.putBack(job);
        return false;
      }
      yield* fail(job, RUNNER_LOST, at);
      return true;
    },
  };
}
