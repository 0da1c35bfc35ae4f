/**
 * The queue of work: a row of `jobs` per piece, and a row of `queues` per project and kind with the
 * counters. The project with the smallest vtime is served next and its vtime grows by one: one
 * project's backlog of any length delays another's next piece by one turn, and places.ts keeps some
 * places for projects that hold none. Counters change with the
 * rows; every transition is inside the operation that causes it.
 *   ready --take--> running --drop--> (gone);  running --putBack--> ready;  ready --drop--> (gone)
 */
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { Holder, WorkKind } from '../../types/leases.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { placesOf } from './places.ts';

export type JobRow = {
  id: string;
  kind: WorkKind;
  projectId: string;
  state: 'ready' | 'running';
  leaseId: string | null;
  leaseUntil: number | null;
  expiresAt: number;
  /** A user asked for its end. */
  releasedAt: number | null;
  /** Of the request that asked for it. */
  traceparent: string | null;
};

export const JOB_COLUMNS = `id, kind, project_id AS projectId, state, lease_id AS leaseId,
  lease_until AS leaseUntil, expires_at AS expiresAt, released_at AS releasedAt, traceparent`;

/**
 * Ours: the runner ends what is over or released; core ends what such a runner forgot. Closing a
 * Chrome and saving its context takes seconds, a large one a minute, and needs the lease.
 */
export const ENDING_GRACE_MS = 120_000;

/** Of the work that a project may hold and still get more: its cap is the limit. */
const NO_LIMIT = 2 ** 31;

export type NewJob = {
  id: string;
  kind: WorkKind;
  projectId: string;
  expiresAt: number;
  /** Where the project's operator has not said. */
  queueMax: number;
  traceparent: string | undefined;
  at: number;
};

export type Lease = {
  runnerId: string;
  instanceId: string;
  leaseId: string;
  leaseUntil: number;
  /** That its runner has of this kind, the taken ones too; 0 when it does not say. */
  places: number;
};

export type Queue = {
  /** Throws QUEUE_FULL. Wakes who waits for that kind. */
  add(job: NewJob): void;
  /** The next job of that kind, running under the lease. */
  take(kind: WorkKind, lease: Lease): JobRow | undefined;
  find(id: string): JobRow | undefined;
  expireAt(id: string, at: number): void;
  /** Its runner is to end it, by `endBy` at the latest. False when it was asked before. */
  release(job: JobRow, wanted: { at: number; endBy: number }): boolean;
  /** It waits again, for what is left of its patience. */
  putBack(job: JobRow): void;
  /** Its resource has ended. */
  drop(job: JobRow): void;
};

export const queueOf = preparedOnce((tx: Tx): Queue => {
  const { wake } = tx;
  const sql = { ...jobStatements(tx), ...countStatements(tx) };
  const places = placesOf(tx);

  return {
    add(job) {
      const { ready = 0, readyMax = null } = sql.waiting.get(job) ?? {};
      const limit = readyMax ?? job.queueMax;
      if (ready >= limit) {
        const facts = { limit, current: ready };
        const message =
          `Too many ${job.kind}s wait in this project (limit ${limit}, currently ${ready}). ` +
          'A place comes free when one of them starts or is ended.';
        throw new Fault('QUEUE_FULL', message, facts);
      }
      sql.countIn.run(job);
      sql.insert.run({ ...job, traceparent: job.traceparent ?? null });
      wake(`work:${job.kind}`);
    },
    take(kind, lease) {
      const mayHold = places.isReserved({ kind, ...lease }) ? 0 : NO_LIMIT;
      const projectId = sql.nextProject.get({ kind, mayHold });
      if (projectId === undefined) return undefined;
      const job = sql.take.get({ ...lease, kind, projectId });
      if (job) sql.countTaken.run(kind, projectId);
      return job;
    },
    find: (id) => sql.find.get(id),
    expireAt: (id, at) => void sql.expireAt.run(at, id),
    release: ({ id }, wanted) => sql.release.run({ ...wanted, id }).changes > 0,
    putBack(job) {
      sql.putBack.run(job.id);
      sql.countPutBack.run(job.kind, job.projectId);
      wake(`work:${job.kind}`);
    },
    drop(job) {
      sql.remove.run(job.id);
      sql.countOut.run(job);
      // A place came free: under the project's cap, or beyond a runner's reserve for any project.
      if (sql.anyReady.get(job.kind) === 1) wake(`work:${job.kind}`);
    },
  };
});

function jobStatements({ db }: Tx) {
  const insert = db.prepare<[object]>(`
    INSERT INTO jobs (id, kind, project_id, state, expires_at, traceparent, created_at)
    VALUES (@id, @kind, @projectId, 'ready', @expiresAt, @traceparent, @at)`);
  const take = db.prepare<[object], JobRow>(`
    UPDATE jobs SET state = 'running', runner_id = @runnerId, instance_id = @instanceId,
      lease_id = @leaseId, lease_until = @leaseUntil
    WHERE id = (SELECT id FROM jobs
      WHERE kind = @kind AND project_id = @projectId AND state = 'ready' ORDER BY id LIMIT 1)
    RETURNING ${JOB_COLUMNS}`); // index jobs_ready
  const expireAt = db.prepare<[number, string]>('UPDATE jobs SET expires_at = ? WHERE id = ?');
  const find = db.prepare<[string], JobRow>(`SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`);
  const release = db.prepare<[object]>(`
    UPDATE jobs SET released_at = @at, expires_at = MIN(expires_at, @endBy)
    WHERE id = @id AND released_at IS NULL`);
  const putBack = db.prepare<[string]>(`
    UPDATE jobs SET state = 'ready', runner_id = NULL, instance_id = NULL, lease_id = NULL,
      lease_until = NULL
    WHERE id = ?`);
  const remove = db.prepare<[string]>('DELETE FROM jobs WHERE id = ?');
  return { insert, take, find, expireAt, release, putBack, remove };
}

function countStatements({ db }: Tx) {
  const waiting = db.prepare<[object], { ready: number; readyMax: number | null }>(`
    SELECT ready, ready_max AS readyMax FROM queues
    WHERE kind = @kind AND project_id = @projectId`);
  // A queue in which nothing waited starts where the others are, or it would hoard the turns that
  // it did not need. Indexes queues_waiting and queues_by_vtime.
  const countIn = db.prepare<[object]>(`
    UPDATE queues SET ready = ready + 1,
      vtime = CASE WHEN ready > 0 THEN vtime ELSE MAX(vtime, COALESCE(
        (SELECT MIN(vtime) FROM queues WHERE kind = @kind AND ready > 0),
        (SELECT MAX(vtime) FROM queues WHERE kind = @kind) - 1)) END
    WHERE kind = @kind AND project_id = @projectId`);
  const nextProject = db
    .prepare<[object], string>(`
      SELECT project_id FROM queues
      WHERE kind = @kind AND ready > 0 AND running < cap AND running <= @mayHold
      ORDER BY vtime LIMIT 1`) // index queues_next
    .pluck();
  const countTaken = db.prepare<[string, string]>(`
    UPDATE queues SET ready = ready - 1, running = running + 1, vtime = vtime + 1
    WHERE kind = ? AND project_id = ?`);
  const countPutBack = db.prepare<[string, string]>(`
    UPDATE queues SET ready = ready + 1, running = running - 1, vtime = vtime - 1
    WHERE kind = ? AND project_id = ?`);
  const countOut = db.prepare<[object]>(`
    UPDATE queues SET ready = ready - (@state = 'ready'), running = running - (@state = 'running')
    WHERE kind = @kind AND project_id = @projectId`);
  const anyReady = db
    .prepare<[string], number>('SELECT EXISTS (SELECT 1 FROM queues WHERE kind = ? AND ready > 0)')
    .pluck(); // index queues_waiting
  return { waiting, countIn, nextProject, countTaken, countPutBack, countOut, anyReady };
}

export const jobByLease = preparedOnce(({ db }: Tx): ((leaseId: string) => JobRow | undefined) => {
  // Index jobs_by_lease.
  const select = db.prepare<[string], JobRow>(`SELECT ${JOB_COLUMNS} FROM jobs WHERE lease_id = ?`);
  return (leaseId) => select.get(leaseId);
});

/** Throws LEASE_LOST for an instance that is not the runner's newest. */
export const onlyLive = preparedOnce(({ db }: Tx): ((holder: Holder) => void) => {
  const select = db.prepare<[object]>(
    'SELECT 1 FROM runners WHERE id = @runnerId AND instance_id = @instanceId',
  );
  return ({ runnerId, instanceId }) => {
    if (select.get({ runnerId, instanceId })) return;
    throw new Fault('LEASE_LOST', 'This runner instance is not registered, or a newer one is.');
  };
});
