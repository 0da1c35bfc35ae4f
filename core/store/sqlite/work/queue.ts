/** The queue in SQLite: a row of `jobs` for each piece of work, and the counters in `queues`. */
import type { Job, QueueRow, QueueStatements } from '../../operations/queue.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

export const JOB_COLUMNS = `id, kind, project_id AS projectId, state, lease_id AS leaseId,
  lease_until AS leaseUntil, expires_at AS expiresAt, released_at AS releasedAt, traceparent`;

export const queueStatements = preparedOnce((tx: Tx): QueueStatements => {
  const sql = { ...jobStatements(tx), ...counterStatements(tx), ...runnerStatements(tx) };
  return {
    queueOf: (kind, projectId) => found(sql.queue.get({ kind, projectId })),
    count(kind, projectId, { ready, running, turns }) {
      if (turns === 0) sql.count.run(ready, running, kind, projectId);
      else sql.countTurns.run(ready, running, turns, kind, projectId);
    },
    insert: (job) => void sql.insert.run(job),
    nextProject: (kind, mayHold) => found(sql.nextProject.get(kind, mayHold)),
    lease: (kind, projectId, lease) => found(sql.lease.get({ ...lease, kind, projectId })),
    find: (id) => found(sql.find.get(id)),
    findByLease: (leaseId) => found(sql.findByLease.get(leaseId)),
    setExpiry: (id, at) => void sql.setExpiry.run(at, id),
    release: (wanted) => found(sql.release.run(wanted).changes > 0),
    putBack: (id) => void sql.putBack.run(id),
    remove: (id) => void sql.remove.run(id),
    hasReady: (kind) => found(sql.hasReady.get(kind) === 1),
    heldBy: (runnerId, kind) => found(sql.heldBy.get(runnerId, kind) ?? 0),
    haveSeveralProjectsKeys: () => found(sql.severalKeys.get() === 1),
    isLive: ({ runnerId, instanceId }) => found(sql.isLive.get(runnerId, instanceId) !== undefined),
  };
});

function jobStatements({ db }: Tx) {
  return {
    insert: db.prepare<[object]>(`
      INSERT INTO jobs (id, kind, project_id, state, expires_at, traceparent, created_at)
      VALUES (@id, @kind, @projectId, 'ready', @expiresAt, @traceparent, @at)`),
    // Index jobs_ready.
    lease: db.prepare<[object], Job>(`
      UPDATE jobs SET state = 'running', runner_id = @runnerId, instance_id = @instanceId,
        lease_id = @leaseId, lease_until = @leaseUntil
      WHERE id = (SELECT id FROM jobs
        WHERE kind = @kind AND project_id = @projectId AND state = 'ready' ORDER BY id LIMIT 1)
      RETURNING ${JOB_COLUMNS}`),
    setExpiry: db.prepare<[number, string]>('UPDATE jobs SET expires_at = ? WHERE id = ?'),
    find: db.prepare<[string], Job>(`SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`),
    // Index jobs_by_lease.
    findByLease: db.prepare<[string], Job>(`SELECT ${JOB_COLUMNS} FROM jobs WHERE lease_id = ?`),
    release: db.prepare<[object]>(`
      UPDATE jobs SET released_at = @at, expires_at = MIN(expires_at, @endBy)
      WHERE id = @id AND released_at IS NULL`),
    putBack: db.prepare<[string]>(`
      UPDATE jobs SET state = 'ready', runner_id = NULL, instance_id = NULL, lease_id = NULL,
        lease_until = NULL
      WHERE id = ?`),
    remove: db.prepare<[string]>('DELETE FROM jobs WHERE id = ?'),
  };
}

function counterStatements({ db }: Tx) {
  return {
    // Indexes queues_waiting and queues_by_vtime, read only where nothing waits.
    queue: db.prepare<[object], QueueRow>(`
      SELECT ready, ready_max AS readyMax, vtime AS turn,
        IIF(ready > 0, NULL,
          (SELECT MIN(vtime) FROM queues WHERE kind = @kind AND ready > 0)) AS firstTurn,
        IIF(ready > 0, vtime, (SELECT MAX(vtime) FROM queues WHERE kind = @kind)) AS lastTurn
      FROM queues WHERE kind = @kind AND project_id = @projectId`),
    count: db.prepare<[number, number, string, string]>(`
      UPDATE queues SET ready = ready + ?, running = running + ?
      WHERE kind = ? AND project_id = ?`),
    countTurns: db.prepare<[number, number, number, string, string]>(`
      UPDATE queues SET ready = ready + ?, running = running + ?, vtime = vtime + ?
      WHERE kind = ? AND project_id = ?`),
    // Index queues_next.
    nextProject: db
      .prepare<[string, number], string>(`
        SELECT project_id FROM queues
        WHERE kind = ? AND ready > 0 AND running < cap AND running <= ?
        ORDER BY vtime LIMIT 1`)
      .pluck(),
    // Index queues_waiting.
    hasReady: db
      .prepare<[string], number>(
        'SELECT EXISTS (SELECT 1 FROM queues WHERE kind = ? AND ready > 0)',
      )
      .pluck(),
  };
}

function runnerStatements({ db }: Tx) {
  return {
    // Index jobs_by_runner.
    heldBy: db
      .prepare<[string, string], number>(`
        SELECT COUNT(*) FROM jobs WHERE runner_id = ? AND kind = ? AND state = 'running'`)
      .pluck(),
    severalKeys: db
      .prepare<[], number>(`
        SELECT EXISTS (SELECT 1 FROM api_keys WHERE revoked_at IS NULL AND project_id <>
          (SELECT project_id FROM api_keys WHERE revoked_at IS NULL LIMIT 1))`)
      .pluck(),
    isLive: db.prepare<[string, string]>('SELECT 1 FROM runners WHERE id = ? AND instance_id = ?'),
  };
}
