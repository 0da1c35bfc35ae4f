/**
 * The queue of work: a job for each piece, and a counter row for each project and kind. The project
 * with the smallest turn is served next and its turn grows by one, so one project's backlog of any
 * length delays another's next piece by one turn. Some places of a runner are reserved for projects
 * that hold none. The counters change with the jobs, in the operation that causes the transition.
 */
import type { Holder, WorkKind } from '../types/leases.ts';
import type { Read, Steps, Transaction } from './steps.ts';
import { instanceSuperseded, queueFull } from './texts.ts';

export type Job = {
  id: string;
  kind: WorkKind;
  projectId: string;
  state: 'ready' | 'running';
  leaseId: string | null;
  leaseUntil: number | null;
  expiresAt: number;
  /** Time of the request for its end. */
  releasedAt: number | null;
  /** Of the request that created it. */
  traceparent: string | null;
};

/**
 * Ours: the runner ends expired or released work; core ends work that its runner did not end.
 * Closing a Chrome and saving its context takes seconds, for a large context a minute, and needs
 * the lease.
 */
export const ENDING_GRACE_MS = 120_000;

/** Ours: the part that a single busy project cannot use, so that other projects start at once. */
const RESERVED_PART = 8;

/** No other limit of the project's work than its cap. */
const NO_LIMIT = 2 ** 31;

export type NewJob = {
  id: string;
  kind: WorkKind;
  projectId: string;
  expiresAt: number;
  /** Where the project has no own limit. */
  queueMax: number;
  traceparent: string | undefined;
  at: number;
};

export type Lease = Holder & {
  leaseId: string;
  leaseUntil: number;
  /** All places of its runner for this kind, used or free; 0 when not reported. */
  places: number;
};

/** A project's counters of one kind. */
export type QueueRow = {
  ready: number;
  readyMax: number | null;
  turn: number;
  /** The smallest turn of a queue of the kind in which work waits; null when there is none. */
  firstTurn: number | null;
  /** The largest turn of the kind. */
  lastTurn: number;
};

export type QueueStatements = {
  queueOf(wanted: { kind: WorkKind; projectId: string }): Read<QueueRow | undefined>;
  /** Adds to the project's counters of the kind. */
  count(kind: WorkKind, projectId: string, change: Change): void;
  insert(job: Omit<NewJob, 'queueMax' | 'traceparent'> & Pick<Job, 'traceparent'>): void;
  /** The project of the smallest turn with waiting work, below its cap and at most `mayHold`. */
  nextProject(kind: WorkKind, mayHold: number): Read<string | undefined>;
  /** The project's oldest job that waits, now running under the lease. */
  lease(wanted: Lease & { kind: WorkKind; projectId: string }): Read<Job | undefined>;
  find(id: string): Read<Job | undefined>;
  findByLease(leaseId: string): Read<Job | undefined>;
  setExpiry(job: { id: string; expiresAt: number }): void;
  /** False when the release was requested before. */
  release(wanted: { id: string; at: number; endBy: number }): Read<boolean>;
  /** To ready, without its lease. */
  putBack(id: string): void;
  remove(id: string): void;
  hasReady(kind: WorkKind): Read<boolean>;
  /** Places of the kind that the runner's work uses. */
  heldBy(runnerId: string, kind: WorkKind): Read<number>;
  /** Whether keys of more than one project are valid. */
  haveSeveralProjectsKeys(): Read<boolean>;
  /** Whether the instance is the newest of its runner. */
  isLive(holder: Holder): Read<boolean>;
};

type Change = { ready: number; running: number; turns: number };

const LEASED: Change = { ready: -1, running: 1, turns: 1 };
const PUT_BACK: Change = { ready: 1, running: -1, turns: -1 };
const DROPPED: Readonly<Record<Job['state'], Change>> = {
  ready: { ready: -1, running: 0, turns: 0 },
  running: { ready: 0, running: -1, turns: 0 },
};

export type Queue = ReturnType<typeof queueOperations>;

export function queueOperations(jobs: QueueStatements, { wake }: Transaction) {
  return {
    /** Throws QUEUE_FULL. Wakes the runners that wait for that kind. */
    *add({ queueMax, ...job }: NewJob): Steps<void> {
      const { kind, projectId } = job;
      const queue = yield* jobs.queueOf(job);
      const limit = queue?.readyMax ?? queueMax;
      const ready = queue?.ready ?? 0;
      if (ready >= limit) throw queueFull(kind, limit, ready);
      if (queue) {
        const turns = turnOnArrival(queue) - queue.turn;
        jobs.count(kind, projectId, { ready: 1, running: 0, turns });
      }
      jobs.insert({ ...job, traceparent: job.traceparent ?? null });
      wake(`work:${kind}`);
    },
    /** The next job of that kind, running under the lease. */
    *lease(kind: WorkKind, lease: Lease): Steps<Job | undefined> {
      const mayHold = (yield* isReserved(jobs, kind, lease)) ? 0 : NO_LIMIT;
      const projectId = yield* jobs.nextProject(kind, mayHold);
      if (projectId === undefined) return undefined;
      const job = yield* jobs.lease({ ...lease, kind, projectId });
      if (job) jobs.count(kind, projectId, LEASED);
      return job;
    },
    find: jobs.find,
    findByLease: jobs.findByLease,
    setExpiry: jobs.setExpiry,
    /** Its runner must end it within the grace. False when it was released before. */
    release: ({ id }: Job, at: number): Read<boolean> =>
      jobs.release({ id, at, endBy: at + ENDING_GRACE_MS }),
    /** It waits again, until its old expiry. */
    putBack({ id, kind, projectId }: Job): void {
      jobs.putBack(id);
      jobs.count(kind, projectId, PUT_BACK);
      wake(`work:${kind}`);
    },
    /** Its resource has ended. */
    *drop({ id, kind, projectId, state }: Job): Steps<void> {
      jobs.remove(id);
      jobs.count(kind, projectId, DROPPED[state]);
      // A place is free: under the project's cap, or beyond a runner's reserve for any project.
      if (yield* jobs.hasReady(kind)) wake(`work:${kind}`);
    },
    /** Throws LEASE_LOST for an instance that is not the runner's newest. */
    *checkLive(holder: Holder): Steps<void> {
      if (!(yield* jobs.isLive(holder))) throw instanceSuperseded();
    },
  };
}

/**
 * Whether the runner's free places of that kind are within its reserve: only for projects that hold
 * none, so that a project within its limits does not keep the others waiting until its work ends.
 * One project alone with a key has all places. Counted at each lease, as a runner's poll keeps the
 * width that it began with.
 */
function* isReserved(jobs: QueueStatements, kind: WorkKind, lease: Lease): Steps<boolean> {
  const reserve = reserveOf(lease.places);
  if (reserve === 0) return false;
  const free = lease.places - (yield* jobs.heldBy(lease.runnerId, kind));
  return free <= reserve && (yield* jobs.haveSeveralProjectsKeys());
}

/** Of the places of a kind. A single place is not reserved: no project with work could take it. */
function reserveOf(places: number): number {
  return places > 1 ? Math.max(1, Math.floor(places / RESERVED_PART)) : 0;
}

/**
 * An empty queue continues at the turn of the others: otherwise it would save the turns that it did
 * not use.
 */
function turnOnArrival({ ready, turn, firstTurn, lastTurn }: QueueRow): number {
  return ready > 0 ? turn : Math.max(turn, firstTurn ?? lastTurn - 1);
}
