/** The queue in SQLite: a row of `jobs` for each piece of work, and the counters in `queues`. */
import type { LeasedJob, QueueStatements } from '../../operations/queue.ts';
import type { WorkKind } from '../../types/leases.ts';
import { frequentQueries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

export const JOB_COLUMNS = `id, kind, project_id AS projectId, state, lease_id AS leaseId,
  lease_until AS leaseUntil, expires_at AS expiresAt, released_at AS releasedAt, traceparent`;

/** Of a job whose columns are read: the session of its work. */
const SESSION = `CASE kind WHEN 'session' THEN jobs.id WHEN 'invocation' THEN
    (SELECT session_id FROM invocations WHERE invocations.id = jobs.id) END AS sessionId`;

/** Of a job under a lease: its work is PENDING. */
export const WAITS = `(CASE kind
    WHEN 'invocation' THEN
      (SELECT status FROM invocations WHERE invocations.id = jobs.id)
    WHEN 'build' THEN (SELECT status FROM builds WHERE builds.id = jobs.id)
    ELSE (SELECT status FROM sessions WHERE sessions.id = jobs.id) END) = 'PENDING'`;

/** Of a job under a lease. */
export const HELD_COLUMNS = `${JOB_COLUMNS}, ${SESSION}, CASE kind
    WHEN 'invocation' THEN
      (SELECT status = 'PENDING' FROM invocations WHERE invocations.id = jobs.id)
    WHEN 'build' THEN (SELECT status = 'PENDING' FROM builds WHERE builds.id = jobs.id)
    ELSE 0 END AS isPending`;

export const queueStatements = preparedOnce(
  (tx: Tx): QueueStatements => ({
    ...jobStatements(tx),
    ...counterStatements(tx),
    ...leaseStatement(tx),
    ...runnerStatements(tx),
  }),
);

function jobStatements(tx: Tx) {
  const { row, write, changed } = statements(tx);
  return {
    insert: write(`
      INSERT INTO jobs (id, kind, project_id, state, expires_at, traceparent, created_at)
      VALUES (@id, @kind, @projectId, 'ready', @expiresAt, @traceparent, @at)`),
    setExpiry: write('UPDATE jobs SET expires_at = @expiresAt WHERE id = @id'),
    find: row(`SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ?`),
    // Index jobs_by_lease.
    findByLease: row(`SELECT ${HELD_COLUMNS} FROM jobs WHERE lease_id = ?`),
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
  const { row, exists, write } = statements(tx);
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
    // Index queues_waiting.
    hasReady: exists('SELECT 1 FROM queues WHERE kind = ? AND ready > 0 LIMIT 1'),
  } satisfies Partial<QueueStatements>;
}

function leaseStatement(tx: Tx): Pick<QueueStatements, 'lookAhead' | 'lease'> {
  const { row, value } = frequentQueries(tx);
  // Index queues_next.
  const nextProject = value<[WorkKind, number], string>(`
    SELECT project_id FROM queues
    WHERE kind = ? AND ready > 0 AND running < cap AND running <= ?
    ORDER BY vtime LIMIT 1`);
  // Index jobs_ready.
  const lease = row<[object], LeasedJob>(`
    UPDATE jobs SET state = 'running', runner_id = @runnerId, instance_id = @instanceId,
      lease_id = @leaseId, lease_until = @leaseUntil
    WHERE id = (SELECT id FROM jobs
      WHERE kind = @kind AND project_id = @projectId AND state = 'ready' ORDER BY id LIMIT 1)
    RETURNING ${JOB_COLUMNS}, ${SESSION}`);
  return {
    lookAhead() {},
    lease({ mayHold, ...wanted }) {
      const projectId = nextProject(wanted.kind, mayHold);
      const job = projectId === undefined ? undefined : lease({ ...wanted, projectId });
      return found({ job, hasMore: job !== undefined });
    },
  };
}

function runnerStatements(tx: Tx) {
  const { row, number, exists } = statements(tx);
  return {
    // Index jobs_by_runner.
    heldBy: number(`
      SELECT COUNT(*) FROM jobs WHERE runner_id = ? AND kind = ? AND state = 'running'`),
    haveSeveralProjectsKeys: exists(`
      SELECT 1 FROM api_keys WHERE revoked_at IS NULL AND project_id <>
        (SELECT project_id FROM api_keys WHERE revoked_at IS NULL LIMIT 1)
      LIMIT 1`),
    instance: row(`
      SELECT drained_at AS drainedAt FROM runners
      WHERE id = @runnerId AND instance_id = @instanceId`),
  } satisfies Partial<QueueStatements>;
}
