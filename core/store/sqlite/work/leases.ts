/** Leases in SQLite: the statements over `runners` and over leased rows of `jobs`. */
import type { LeaseStatements } from '../../operations/leases.ts';
import { statements } from '../engine/statements.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { JOB_COLUMNS } from './queue.ts';

export const leaseStatements = preparedOnce((tx: Tx): LeaseStatements => {
  const { row, rows, write } = statements(tx);
  return {
    register: write(`
      INSERT INTO runners (id, instance_id, address, updated_at)
      VALUES (@runnerId, @instanceId, @address, @at)
      ON CONFLICT (id) DO UPDATE
        SET instance_id = @instanceId, address = @address, updated_at = @at`),
    // Index jobs_by_runner.
    heldByOthers: rows(`
      SELECT ${JOB_COLUMNS} FROM jobs
      WHERE state = 'running' AND runner_id = @runnerId AND instance_id <> @instanceId`),
    renew: row(`
      UPDATE jobs SET lease_until = @leaseUntil
      WHERE lease_id = @leaseId AND runner_id = @runnerId AND instance_id = @instanceId
      RETURNING ${JOB_COLUMNS}`),
    unrenewed: rows(`
      SELECT ${JOB_COLUMNS} FROM jobs WHERE state = 'running' AND lease_until < @at LIMIT @max`),
    expired: rows(`SELECT ${JOB_COLUMNS} FROM jobs WHERE expires_at < @at LIMIT @max`),
    recover: recovery(tx),
  };
});

function recovery(tx: Tx): LeaseStatements['recover'] {
  const { write } = statements(tx);
  const prolong = write(`
    UPDATE jobs SET lease_until = MAX(lease_until, @leaseUntil),
      expires_at = expires_at + MAX(0, @at - COALESCE((SELECT at FROM heartbeat), @at))
    WHERE state = 'running'`);
  const clear = write('UPDATE queues SET ready = 0, running = 0');
  const recount = write(`
    UPDATE queues SET ready = counted.ready, running = counted.running
    FROM (SELECT kind, project_id, SUM(state = 'ready') AS ready, SUM(state = 'running') AS running
      FROM jobs GROUP BY kind, project_id) AS counted
    WHERE queues.kind = counted.kind AND queues.project_id = counted.project_id`);
  return (wanted) => {
    prolong(wanted);
    clear();
    recount();
  };
}
