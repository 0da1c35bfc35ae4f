/**
 * The queue in PostgreSQL: a row of `jobs` for each piece of work, and the counters in `queues`.
 */
import type { QueueRow, QueueStatements } from '../../operations/queue.ts';
import type { WorkKind } from '../../types/leases.ts';
import { statements } from '../engine/statements.ts';
import { mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { HANDOFF, IS_WHOLE } from '../session-sql.ts';
import { receivers, withReceivers } from '../webhooks/receivers.ts';
import { type HeldRow, remembered } from './before.ts';
import { CHANGED_COLUMNS } from './invocations.ts';
import { LISTED_COLUMNS } from './session-rows.ts';

export const JOB_COLUMNS = `id, kind, project_id AS "projectId", state, lease_id AS "leaseId",
  lease_until AS "leaseUntil", expires_at AS "expiresAt", released_at AS "releasedAt", traceparent`;

/** Of a job whose columns are read: the session of its work. */
const SESSION_ID = `CASE kind WHEN 'session' THEN jobs.id WHEN 'invocation' THEN
    (SELECT session_id FROM invocations WHERE invocations.id = jobs.id) END`;
export const SESSION = `${SESSION_ID} AS "sessionId"`;

/** Of a job under a lease: its work is PENDING. */
export const WAITS = `(CASE kind
    WHEN 'invocation' THEN
      (SELECT status FROM invocations WHERE invocations.id = jobs.id)
    WHEN 'build' THEN (SELECT status FROM builds WHERE builds.id = jobs.id)
    ELSE (SELECT status FROM sessions WHERE sessions.id = jobs.id) END) = 'PENDING'`;

/** Of a locked job: its work, and who receives the events of its transitions (before.ts). */
const heldColumns = (invocation: string, session: string) => `
  ${JOB_COLUMNS}, ${SESSION}, ${receivers('jobs.project_id')},
  (kind = 'build' AND EXISTS (
    SELECT 1 FROM builds WHERE builds.id = jobs.id AND status = 'PENDING')) AS "isPendingBuild",
  CASE kind WHEN 'invocation' THEN (${invocation}) END AS invocation, ${session} AS session`;

const invocationWhere = (condition: string) => `
  SELECT row_to_json(one) FROM (
    SELECT ${CHANGED_COLUMNS} FROM invocations WHERE ${condition}) AS one`;

const sessionOf = (id: string) => `
  SELECT row_to_json(one) FROM (
    SELECT ${LISTED_COLUMNS}, timeout_ms AS "timeoutMs", ${IS_WHOLE} AS "isWhole",
      (SELECT row_to_json(pending) FROM (SELECT ${HANDOFF} FROM handoffs
        WHERE session_id = sessions.id AND status = 'PENDING' FOR UPDATE) AS pending) AS handoff
    FROM sessions WHERE id = ${id}) AS one`;

const HELD_COLUMNS = heldColumns(
  invocationWhere('invocations.id = jobs.id'),
  `(${sessionOf(SESSION_ID)})`,
);

const IS_WAITING = `invocations.id = jobs.id AND status = 'PENDING'`;
/**
 * A renewal changes only work that is PENDING. The job was locked by an earlier statement. Its
 * session is not: what else may change of it are its labels, and an event may show those of before.
 */
export const RENEWED_COLUMNS = heldColumns(
  invocationWhere(IS_WAITING),
  `CASE kind WHEN 'invocation' THEN (
    ${sessionOf(`(SELECT session_id FROM invocations WHERE ${IS_WAITING})`)}) END`,
);

/** Locks the counters of a project and kind, before a rule reads them. */
export function queueLock(tx: Tx): (kind: WorkKind, projectId: string) => void {
  const lock = statements(tx).write<[WorkKind, string]>(
    'SELECT 1 FROM queues WHERE kind = ? AND project_id = ? FOR UPDATE',
  );
  return (kind, projectId) => {
    lock(kind, projectId);
    lockedQueues(tx).add(kind + projectId);
  };
}

/** The others are those of lease-jobs.ts. */
export function queueStatements(tx: Tx) {
  return { ...jobStatements(tx), ...counterStatements(tx) };
}

function jobStatements(tx: Tx) {
  const { row, write, changed } = statements(tx);
  // What is read with a lock is as old as the statement, which may have waited.
  const lock = write<[string]>(`
    WITH job AS (SELECT ${SESSION} FROM jobs WHERE lease_id = ? FOR UPDATE)
    SELECT 1 FROM sessions WHERE id = (SELECT "sessionId" FROM job) FOR NO KEY UPDATE`);
  const held = row<[string], HeldRow>(`
    SELECT ${HELD_COLUMNS} FROM jobs WHERE lease_id = ?`);
  const remember = remembered(tx);
  return {
    insert: write(`
      INSERT INTO jobs (id, kind, project_id, state, expires_at, traceparent, created_at)
      VALUES (@id, @kind, @projectId, 'ready', @expiresAt, @traceparent, @at)`),
    setExpiry: write('UPDATE jobs SET expires_at = @expiresAt WHERE id = @id'),
    find: row(`SELECT ${JOB_COLUMNS} FROM jobs WHERE id = ? FOR UPDATE`),
    // Index jobs_by_lease.
    findByLease(leaseId) {
      lock(leaseId);
      return mapped(held(leaseId), (job) => job && remember(job));
    },
    release: changed(`
      UPDATE jobs SET released_at = @at, expires_at = LEAST(expires_at, @endBy)
      WHERE id = @id AND released_at IS NULL`),
    putBack: write(`
      UPDATE jobs SET state = 'ready', runner_id = NULL, instance_id = NULL, lease_id = NULL,
        lease_until = NULL
      WHERE id = ?`),
    remove: write('DELETE FROM jobs WHERE id = ?'),
  } satisfies Partial<QueueStatements>;
}

/** Counters that the running operation has locked. */
const LOCKED = {};

export function lockedQueues(tx: Tx): Set<string> {
  return tx.memory(LOCKED, () => new Set<string>());
}

function counterStatements(tx: Tx) {
  const { row, exists, write } = statements(tx);
  const remembered = withReceivers<QueueRow & { projectId: string }>(tx);
  const count = write(`
    UPDATE queues SET ready = ready + ?, running = running + ?, vtime = vtime + ?
    WHERE kind = ? AND project_id = ?`);
  const queueOf = row<[object], Parameters<typeof remembered>[0]>(`
    SELECT project_id AS "projectId", ${receivers('queues.project_id')}, ready,
      ready_max AS "readyMax", vtime AS turn,
      CASE WHEN ready > 0 THEN NULL
        ELSE (SELECT MIN(vtime) FROM queues WHERE kind = @kind AND ready > 0) END AS "firstTurn",
      CASE WHEN ready > 0 THEN vtime
        ELSE (SELECT MAX(vtime) FROM queues WHERE kind = @kind) END AS "lastTurn"
    FROM queues WHERE kind = @kind AND project_id = @projectId FOR UPDATE`);
  return {
    // Indexes queues_waiting and queues_by_vtime, read only where nothing waits.
    queueOf(wanted) {
      lockedQueues(tx).add(wanted.kind + wanted.projectId);
      return mapped(queueOf(wanted), (queue) => queue && remembered(queue));
    },
    /** Without a lock on it, last of all: the counters of a busy project are locked shortly. */
    count(kind, projectId, { ready, running, turns }) {
      const write = () => count(ready, running, turns, kind, projectId);
      if (lockedQueues(tx).has(kind + projectId)) write();
      else tx.atEnd(`1 ${projectId} ${kind}`, write);
    },
    // Index queues_waiting.
    hasReady: exists('SELECT 1 FROM queues WHERE kind = ? AND ready > 0 LIMIT 1'),
  } satisfies Partial<QueueStatements>;
}
