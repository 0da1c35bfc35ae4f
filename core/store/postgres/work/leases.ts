/** Leases in PostgreSQL: the statements over `runners` and over leased rows of `jobs`. */
import type { LeaseStatements } from '../../operations/leases.ts';
import { statements } from '../engine/statements.ts';
import { mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { type HeldRow, remembered } from './before.ts';
import { JOB_COLUMNS, RENEWED_COLUMNS, WAITS } from './queue.ts';

export function leaseStatements(tx: Tx): LeaseStatements {
  const { row, rows, write } = statements(tx);
  const remember = remembered(tx);
  // In one order of projects, whose counters are locked in that order.
  const inOrder = 'ORDER BY project_id, id FOR UPDATE';
  // Index jobs_by_lease.
  const renew = rows<[object], HeldRow>(`
    UPDATE jobs SET lease_until = @leaseUntil
    WHERE id = ANY(ARRAY(
      SELECT id FROM jobs
      WHERE lease_id = ANY(@leaseIds::TEXT[]) AND runner_id = @runnerId
        AND instance_id = @instanceId
      ORDER BY lease_id FOR UPDATE))
    RETURNING ${RENEWED_COLUMNS}`);
  return {
    register: write(`
      INSERT INTO runners (id, instance_id, address, updated_at)
      VALUES (@runnerId, @instanceId, @address, @at)
      ON CONFLICT (id) DO UPDATE
        SET instance_id = @instanceId, address = @address, updated_at = @at,
          drained_at = NULL`),
    // Index jobs_by_lease.
    workUnder: row('SELECT kind, id, project_id AS "projectId" FROM jobs WHERE lease_id = ?'),
    drain: write(`
      UPDATE runners SET drained_at = @at
      WHERE id = @runnerId AND instance_id = @instanceId`),
    // Index jobs_by_runner.
    heldByOthers: rows(`
      SELECT ${JOB_COLUMNS} FROM jobs WHERE id IN (
        SELECT id FROM jobs
        WHERE state = 'running' AND runner_id = @runnerId AND instance_id <> @instanceId
        ORDER BY lease_id FOR UPDATE)
      ${inOrder}`),
    renew: (leases) => mapped(renew(leases), (jobs) => jobs.map(remember)),
    // A job that another operation holds is being renewed or ended. Index jobs_by_lease_end.
    unrenewed: rows(`
      SELECT ${JOB_COLUMNS} FROM jobs WHERE id IN (
        SELECT id FROM jobs
        WHERE state = 'running' AND lease_until < @at AND (lease_until < @lostBefore OR ${WAITS})
        ORDER BY lease_until LIMIT @max FOR UPDATE SKIP LOCKED)
      ${inOrder}`),
    // Index jobs_by_expiry.
    expired: rows(`
      SELECT ${JOB_COLUMNS} FROM jobs WHERE id IN (
        SELECT id FROM jobs WHERE expires_at < @at
        ORDER BY expires_at LIMIT @max FOR UPDATE SKIP LOCKED)
      ${inOrder}`),
    recover: recovery(tx),
  };
}

/**
 * A renewal of several leases and a recovery lock jobs in one order, of their leases. Counters are
 * locked before jobs are counted: what another operation has not committed yet, it will count.
 */
function recovery(tx: Tx): LeaseStatements['recover'] {
  const { write } = statements(tx);
  const prolong = write(`
    WITH held AS (SELECT id FROM jobs WHERE state = 'running' ORDER BY lease_id FOR UPDATE)
    UPDATE jobs SET lease_until = GREATEST(lease_until, @leaseUntil),
      expires_at = expires_at
        + GREATEST(0, @at::BIGINT - COALESCE((SELECT at FROM heartbeat), @at::BIGINT))
    FROM held WHERE jobs.id = held.id`);
  const lock = write<[]>('SELECT 1 FROM queues ORDER BY project_id, kind FOR UPDATE');
  const recount = write<[]>(`
    UPDATE queues SET ready = counted.ready, running = counted.running
    FROM (SELECT queues.kind, queues.project_id,
        COUNT(*) FILTER (WHERE jobs.state = 'ready') AS ready,
        COUNT(*) FILTER (WHERE jobs.state = 'running') AS running
      FROM queues LEFT JOIN jobs USING (kind, project_id) GROUP BY 1, 2) AS counted
    WHERE queues.kind = counted.kind AND queues.project_id = counted.project_id
      AND (queues.ready <> counted.ready OR queues.running <> counted.running)`);
  return (wanted) => {
    prolong(wanted);
    lock();
    recount();
  };
}
