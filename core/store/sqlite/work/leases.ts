/** Leases in SQLite: the statements over `runners` and over leased rows of `jobs`. */
import type { LeaseStatements } from '../../operations/leases.ts';
import type { HeldJob } from '../../operations/queue.ts';
import { frequentQueries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { HELD_COLUMNS, JOB_COLUMNS, WAITS } from './queue.ts';

export const leaseStatements = preparedOnce((tx: Tx): LeaseStatements => {
  const { row, rows, write } = statements(tx);
  const renew = frequentQueries(tx).row<[object], HeldJob>(`
    UPDATE jobs SET lease_until = @leaseUntil
    WHERE lease_id = @leaseId AND runner_id = @runnerId AND instance_id = @instanceId
    RETURNING ${HELD_COLUMNS}`);
  return {
    register: write(`
      INSERT INTO runners (id, instance_id, address, updated_at)
      VALUES (@runnerId, @instanceId, @address, @at)
      ON CONFLICT (id) DO UPDATE
        SET instance_id = @instanceId, address = @address, updated_at = @at,
          drained_at = NULL`),
    drain: write(`
      UPDATE runners SET drained_at = @at
      WHERE id = @runnerId AND instance_id = @instanceId`),
    // Index jobs_by_runner.
    heldByOthers: rows(`
      SELECT ${JOB_COLUMNS} FROM jobs
      WHERE state = 'running' AND runner_id = @runnerId AND instance_id <> @instanceId`),
    renew: ({ leaseIds, ...lease }) =>
      found(leaseIds.flatMap((leaseId) => renew({ ...lease, leaseId }) ?? [])),
    // Index jobs_by_lease.
    workUnder: row('SELECT kind, id, project_id AS projectId FROM jobs WHERE lease_id = ?'),
    // Index jobs_by_lease_end.
    unrenewed: rows(`
      SELECT ${JOB_COLUMNS} FROM jobs
      WHERE state = 'running' AND lease_until < @at AND (lease_until < @lostBefore OR ${WAITS})
      ORDER BY lease_until LIMIT @max`),
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
