/**
 * Leases. A job is `ready`, or `running` under one lease of one live runner instance. Its work
 * stays PENDING until that instance renews the lease, which confirms the arrival of the offer. A
 * lease that expires before the first renewal is undone, and the work waits again. A lease that
 * expires later is still renewed when its runner reports: the work goes on without core. When the
 * runner has not reported for long (`lostAfterMs`), the work fails: a handler has side effects that
 * core cannot see, so it never runs twice. A session is RUNNING when its Chrome is ready:
 * sessions/lifecycle.ts. States: LEASE in states.ts.
 *   ready --lease--> offered --renew--> running --complete--> gone
 *   running --long silence--> gone
 *   offered --silence, caller left--> ready
 */
import { END_REASONS } from '../../../proto/sessions/end-reasons.ts';
import type { GivenUp, Holder, LeasedWork, LeaseOps } from '../types/leases.ts';
import type { EndedSession } from '../types/rows.ts';
import type { BuildTransitions } from './builds.ts';
import { outcomeFor } from './functions/cancel.ts';
import type { InvocationTransitions } from './invocations.ts';
import { ENDING_GRACE_MS, type HeldJob, type Job, type Queue } from './queue.ts';
import type { HandoffTransitions } from './sessions/handoffs.ts';
import type { SessionTransitions } from './sessions/sessions.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';
import { type Cause, instanceDraining, RUNNER_LOST, TIME_OVER } from './texts.ts';
import type { workItems } from './work-items.ts';

export type LeaseStatements = {
  /** The instance is the runner's newest. */
  register(runner: Holder & { address: string | null; at: number }): void;
  /** Jobs that run under leases of other instances of the runner. */
  heldByOthers(holder: Holder): Read<Job[]>;
  /** The instance leases no more work. */
  drain(holder: Holder & { at: number }): void;
  /** Those that the instance holds. */
  renew(leases: Holder & { leaseIds: string[]; leaseUntil: number }): Read<HeldJob[]>;
  workUnder(leaseId: string): Read<Pick<Job, 'kind' | 'id' | 'projectId'> | undefined>;
  /** Jobs whose lease has expired: before `lostBefore`, or before `at` when their work waits. */
  unrenewed(wanted: { at: number; lostBefore: number; max: number }): Read<Job[]>;
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

  /** Returns those that ended; the others wait again. */
  function* loseAll(jobs: Job[], at: number): Steps<GivenUp[]> {
    const ended: GivenUp[] = [];
    for (const job of jobs) {
      const end = yield* lose(job, at);
      if (end) ended.push(end);
    }
    return ended;
  }

  return {
    // biome-ignore lint/correctness/useYield: it only writes
    *recoverWork({ at, leaseMs }) {
      leases.recover({ at, leaseUntil: at + leaseMs });
    },
    *registerRunner(runner) {
      leases.register({ ...runner, address: runner.address ?? null });
      const jobs = yield* leases.heldByOthers(runner);
      // no late files: what an older instance sends of these is refused
      return yield* loseAll(
        jobs.map((job) => ({ ...job, leaseId: null })),
        runner.at,
      );
    },
    *renewLeases({ leaseIds, isDraining = false, leaseMs, at, ...holder }) {
      const instance = queue.instance(holder);
      const renewing = leases.renew({ ...holder, leaseIds, leaseUntil: at + leaseMs });
      const { drainedAt } = yield* queue.liveInstance(holder, instance);
      if (isDraining && drainedAt === null) {
        leases.drain({ ...holder, at });
        queue.wakeAll();
      }
      const jobs = yield* renewing;
      for (const job of jobs) yield* start(job, at);
      const renewed = new Set(jobs.map(({ leaseId }) => leaseId));
      return leaseIds.filter((leaseId) => renewed.has(leaseId));
    },
    *findLease(leaseId) {
      return yield* leases.workUnder(leaseId);
    },
    *sweepWork({ at, lostAfterMs = 0, max }) {
      const over = yield* leases.expired({ at, max });
      const ended: GivenUp[] = [];
      for (const job of over) {
        ended.push(yield* fail(job, overdue(job, yield* isWaiting(job)), at));
      }
      yield* handoffs.expireDue({ at, max });
      const late = { at, lostBefore: at - lostAfterMs, max: max - over.length };
      const unrenewed = yield* leases.unrenewed(late);
      return [...ended, ...(yield* loseAll(unrenewed, at))];
    },
  };
}

/** The lease of work, and its outcomes. */
export function outcomeOperations(
  deps: LeaseDeps & { itemOf: ReturnType<typeof workItems> },
  { crashPoint, later }: Transaction,
): InSteps<Omit<LeaseOps, HolderNames | 'findLateSession'>> {
  const { queue, invocations, builds, itemOf } = deps;
  const { start, isWaiting } = jobTransitions(deps);

  return {
    *leaseWork({ kind, leaseIds, places = 0, leaseMs, at, ...holder }) {
      const instance = queue.instance(holder);
      const ofKind = queue.places({ kind, places, runnerId: holder.runnerId });
      const leases = leaseIds.map((leaseId) => ({ ...holder, leaseId, leaseUntil: at + leaseMs }));
      const { drainedAt } = yield* queue.liveInstance(holder, instance);
      if (drainedAt !== null) throw instanceDraining();
      const work: LeasedWork[] = [];
      for (const lease of leases) {
        const { job, hasMore } = yield* queue.lease(kind, ofKind, lease);
        if (job) later(itemOf(job, lease.leaseId), (item) => void work.push(item));
        if (job) crashPoint('lease-work');
        if (!hasMore) break;
      }
      return work;
    },
    *putBackWork({ leaseIds, isQuiet }) {
      for (const leaseId of leaseIds) {
        const job = yield* queue.findByLease(leaseId);
        if (job && (yield* isWaiting(job))) queue.putBack(job, { isQuiet });
      }
    },
    *completeInvocation({ leaseId, ...end }) {
      const job = yield* queue.findByLease(leaseId);
      if (job?.kind !== 'invocation') return yield* invocations.endedBy(leaseId);
      yield* start(job, end.at); // a runner that has an outcome has run it
      const outcome = outcomeFor(job, end.outcome);
      const { id, projectId, sessionId } = job;
      yield* invocations.end({ ...end, id, projectId, sessionId, leaseId, outcome });
      queue.drop(job);
      return true;
    },
    *completeBuild({ leaseId, ...end }) {
      const job = yield* queue.findByLease(leaseId);
      if (job?.kind !== 'build') return yield* builds.endedBy(leaseId);
      yield* start(job, end.at); // a runner that has an outcome has run it
      yield* builds.end({ ...end, id: job.id, leaseId });
      queue.drop(job);
      return true;
    },
  };
}

/** A session that did not start has failed: its own time has not begun. */
function overdue({ kind, state, releasedAt }: Job, isWaiting: boolean): Cause {
  const { noRunner, browserLate } = END_REASONS;
  if (releasedAt !== null) return RUNNER_LOST; // it does not end what it is asked to end
  if (!isWaiting) return { code: 'TIMED_OUT', message: TIME_OVER[kind] };
  if (kind !== 'session') return { code: 'TIMED_OUT', message: noRunner };
  return { code: 'INTERNAL_ERROR', message: state === 'running' ? browserLate : noRunner };
}

/** The transitions of a job, with those of its work of any kind. */
function jobTransitions({ queue, invocations, builds, sessions }: Omit<LeaseDeps, 'leases'>) {
  const pending = {
    invocation: invocations.isPending,
    build: builds.isPending,
    session: sessions.isPending,
  };
  const isWaiting = ({ kind, id }: Job): Read<boolean> => pending[kind](id);

  /** Ends a job's work without an outcome. The runner of its lease may still send files. */
  function* fail(job: Job, cause: Cause, at: number): Steps<GivenUp> {
    const { id, projectId, kind, leaseId } = job;
    const late = { leaseId, isGivenUp: leaseId !== null };
    const outcome = { kind: 'failure', cause } as const;
    const end = { id, projectId, leaseId: null, at };
    let session: EndedSession | undefined;
    switch (kind) {
      case 'invocation': {
        const shown = outcomeFor(job, outcome);
        // also of a cancelled one: its user may have no context and no log of it
        const browserLoss = cause === RUNNER_LOST ? cause.message : undefined;
        const unstarted = { sessionStartedAt: null, browserLoss, late };
        session = yield* invocations.end({ ...end, outcome: shown, ...unstarted });
        break;
      }
      case 'build':
        yield* builds.end({ ...end, outcome });
        break;
      case 'session': {
        const status = cause.code === 'TIMED_OUT' ? 'TIMED_OUT' : 'ERROR';
        session = { id, status, reason: cause.message };
        yield* sessions.end({ ...session, projectId, ...late, at });
      }
    }
    queue.drop(job);
    return { kind, session };
  }

  return {
    isWaiting,
    fail,
    /** The runner has received it: to RUNNING, once. A session is RUNNING at StartSession. */
    *start({ id, projectId, kind, isPending }: HeldJob, at: number): Steps<void> {
      if (isPending === 0) return;
      const ofKind = kind === 'invocation' ? invocations : builds;
      const expiresAt = yield* ofKind.start({ id, projectId }, at);
      if (expiresAt === undefined) return;
      queue.setExpiry({ id, expiresAt: expiresAt + ENDING_GRACE_MS });
    },
    /** Its lease has expired: undefined when the work waits again. */
    *lose(job: Job, at: number): Steps<GivenUp | undefined> {
      if (yield* isWaiting(job)) {
        queue.putBack(job);
        return undefined;
      }
      return yield* fail(job, RUNNER_LOST, at);
    },
  };
}
