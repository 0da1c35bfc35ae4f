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

const KINDS: readonly WorkKind[] = ['invocation', 'build', 'session'];

/** How much work a project may hold that gets a place: no other limit than its cap, or none. */
const MAY_HOLD = { usually: 2 ** 31, reserved: 0 };

/** With the session of its work; null for a build. */
export type LeasedJob = Job & { sessionId: string | null };

/** With 1 where its invocation or build is PENDING. A session is started by its runner. */
export type HeldJob = LeasedJob & { isPending: 0 | 1 };

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
  /**
   * The oldest waiting job of the project with the smallest turn among those with waiting work that
   * run less than their cap and hold at most `mayHold`. It is now running under the lease.
   * `hasMore`: another may be found.
   */
  lease(
    wanted: Lease & { kind: WorkKind; mayHold: number },
  ): Read<{ job: LeasedJob | undefined; hasMore: boolean }>;
  /** Before the first `lease`, and before what decides on it is known: an engine may read both. */
  lookAhead(wanted: LookAhead): void;
  find(id: string): Read<Job | undefined>;
  findByLease(leaseId: string): Read<HeldJob | undefined>;
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
  /** Undefined when the instance is not the newest of its runner. */
  instance(holder: Holder): Read<RunnerInstance | undefined>;
};

/**
 * `reserved`: where the runner's work uses at least `from` of its places, and several projects have
 * keys. Null: nowhere.
 */
export type LookAhead = { kind: WorkKind; runnerId: string; from: number | null } & {
  mayHold: { usually: number; reserved: number };
};

/** `drainedAt`: when it reported that it drains; null while it leases work. */
export type RunnerInstance = { drainedAt: number | null };

type Change = { ready: number; running: number; turns: number };

const LEASED: Change = { ready: -1, running: 1, turns: 1 };
const PUT_BACK: Change = { ready: 1, running: -1, turns: -1 };
const DROPPED: Readonly<Record<Job['state'], Change>> = {
  ready: { ready: -1, running: 0, turns: 0 },
  running: { ready: 0, running: -1, turns: 0 },
};

export type Queue = ReturnType<typeof queueOperations>;

export function queueOperations(jobs: QueueStatements, { wake, later }: Transaction) {
  return {
    /** For `add`, before the operation waits for anything else. */
    countersOf: jobs.queueOf,
    /** Throws QUEUE_FULL. Wakes the runners that wait for that kind. */
    *add({ queueMax, ...job }: NewJob, counters = jobs.queueOf(job)): Steps<void> {
      const { kind, projectId } = job;
      const queue = yield* counters;
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
    /** The runner's places of that kind, counted now. */
    places: (wanted: WantedPlaces) => placesOf(jobs, wanted),
    /** The next job of that kind, running under the lease. */
    *lease(kind: WorkKind, places: Places, lease: Lease) {
      const mayHold = MAY_HOLD[(yield* places.areReserved()) ? 'reserved' : 'usually'];
      const next = yield* jobs.lease({ ...lease, kind, mayHold });
      if (!next.job) return next;
      places.use();
      jobs.count(kind, next.job.projectId, LEASED);
      return next;
    },
    find: jobs.find,
    findByLease: jobs.findByLease,
    setExpiry: jobs.setExpiry,
    /** Its runner must end it within the grace. False when it was released before. */
    release: ({ id }: Job, at: number): Read<boolean> =>
      jobs.release({ id, at, endBy: at + ENDING_GRACE_MS }),
    /** It waits again, until its old expiry. */
    putBack({ id, kind, projectId }: Job, { isQuiet = false } = {}): void {
      jobs.putBack(id);
      jobs.count(kind, projectId, PUT_BACK);
      if (!isQuiet) wake(`work:${kind}`);
    },
    /** Its resource has ended. */
    drop({ id, kind, projectId, state }: Job): void {
      jobs.remove(id);
      jobs.count(kind, projectId, DROPPED[state]);
      // A place is free: under the project's cap, or beyond a runner's reserve for any project.
      later(jobs.hasReady(kind), (hasReady) => hasReady && wake(`work:${kind}`));
    },
    /** Throws LEASE_LOST for an instance that is not the runner's newest. */
    *liveInstance(holder: Holder, reading = jobs.instance(holder)): Steps<RunnerInstance> {
      const found = yield* reading;
      if (!found) throw instanceSuperseded();
      return found;
    },
    instance: jobs.instance,
    /** The polls of a runner end that drains. */
    wakeAll(): void {
      for (const kind of KINDS) wake(`work:${kind}`);
    },
  };
}

type WantedPlaces = { kind: WorkKind; places: number; runnerId: string };
type Places = ReturnType<typeof placesOf>;

/**
 * `places`: all places of the runner for this kind, used or free; 0 when not reported. They are
 * counted at each lease, as a runner's poll keeps the width that it began with.
 */
function placesOf(jobs: QueueStatements, { kind, places, runnerId }: WantedPlaces) {
  const reserve = reserveOf(places);
  const from = reserve > 0 ? places - reserve : null;
  jobs.lookAhead({ kind, runnerId, from, mayHold: MAY_HOLD });
  const held = reserve > 0 ? jobs.heldBy(runnerId, kind) : undefined;
  let used = 0;
  return {
    /**
     * Whether the free places are within the reserve: only for projects that hold none, so that a
     * project within its limits does not keep the others waiting until its work ends. One project
     * alone with a key has all places.
     */
    *areReserved(): Steps<boolean> {
      if (held === undefined) return false;
      const free = places - (yield* held) - used;
      return free <= reserve && (yield* jobs.haveSeveralProjectsKeys());
    },
    use(): void {
      used += 1;
    },
  };
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
