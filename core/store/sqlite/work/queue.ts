/** The queue in SQLite: a row of `jobs` for each piece of work, and the counters in `queues`. */
import type { QueueStatements } from '../../operations/queue.ts';
import { statements } from '../engine/statements.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

export const JOB_COLUMNS = `id, kind, project_id AS projectId, state, lease_id AS leaseId,
  lease_until AS leaseUntil, expires_at AS expiresAt, released_at AS releasedAt, traceparent`;

export const queueStatements = preparedOnce(
  (tx: Tx): QueueStatements => ({
    ...jobStatements(tx),
    ...counterStatements(tx),
    ...runnerStatements(tx),
  }),
);

function jobStatements(tx: Tx) {
  const { row, write, changed } = statements(tx);
  return {
    insert: write(`
      INSERT INTO jobs (id, kind, project_id, state, expires_at, traceparent, created_at)
      VALUES (@id, @kind, @projectId, 'ready', @expiresAt, @traceparent, @at)`),
    // Index jobs_ready.
    lease: row(`
      UPDATE jobs SET state = 'running', runner_id = @runnerId, instance_id = @instanceId,
        lease_id = @leaseId, lease_until = @leaseUntil
      WHERE id = (SELECT id FROM jobs
        WHERE kind = @kind AND project_id = @projectId AND state = 'ready' ORDER BY id LIMIT 1)
      RETURNING ${JOB_COLUMNS}`),
    setExpiry: write('UPDATE jobs SET expires_at = @expiresAt WHERE id = @id'),
    find: row(`SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`),
    // Index jobs_by_lease.
    findByLease: row(`SELECT ${JOB_COLUMNS} FROM jobs WHERE lease_id = ?`),
    release: changed(`
      UPDATE jobs SET released_at = @at, expires_at = MIN(expires_at, @endBy)
      WHERE id = @id AND released_at IS NULL`),
    putBack: write(`
      UPDATE jobs SET state = 'ready', runner_id = NULL, instance_id = NULL, lease_id = NULL,
        lease_until = NULL
      WHERE id = ?`),
    remove: write('DELETE FROM jobs WHERE id = ?'),
  } satisfies Partial<QueueStatements>;
}

function counterStatements(tx: Tx) {
  const { row, value, exists, write } = statements(tx);
  const count = write(`
    UPDATE queues SET ready = ready + ?, running = running + ?
    WHERE kind = ? AND project_id = ?`);
  const countTurns = write(`
    UPDATE queues SET ready = ready + ?, running = running + ?, vtime = vtime + ?
    WHERE kind = ? AND project_id = ?`);
  return {
    // Indexes queues_waiting and queues_by_vtime, read only where nothing waits.
    queueOf: row(`
      SELECT ready, ready_max AS readyMax, vtime AS turn,
        IIF(ready > 0, NULL,
          (SELECT MIN(vtime) FROM queues WHERE kind = @kind AND ready > 0)) AS firstTurn,
        IIF(ready > 0, vtime, (SELECT MAX(vtime) FROM queues WHERE kind = @kind)) AS lastTurn
      FROM queues WHERE kind = @kind AND project_id = @projectId`),
    count(kind, projectId, { ready, running, turns }) {
      if (turns === 0) count(ready, running, kind, projectId);
      else countTurns(ready, running, turns, kind, projectId);
    },
    // Index queues_next.
    nextProject: value(`
      SELECT project_id FROM queues
      WHERE kind = ? AND ready > 0 AND running < cap AND running <= ?
      ORDER BY vtime LIMIT 1`),
    // Index queues_waiting.
    hasReady: exists('SELECT 1 FROM queues WHERE kind = ? AND ready > 0 LIMIT 1'),
  } satisfies Partial<QueueStatements>;
}

function runnerStatements(tx: Tx) {
  const { number, exists } = statements(tx);
  return {
    // Index jobs_by_runner.
    heldBy: number(`
      SELECT COUNT(*) FROM jobs WHERE runner_id = ? AND kind = ? AND state = 'running'`),
    haveSeveralProjectsKeys: exists(`
      SELECT 1 FROM api_keys WHERE revoked_at IS NULL AND project_id <>
        (SELECT project_id FROM api_keys WHERE revoked_at IS NULL LIMIT 1)
      LIMIT 1`),
    isLive: exists('SELECT 1 FROM runners WHERE id = @runnerId AND instance_id = @instanceId'),
  } satisfies Partial<QueueStatements>;
}
