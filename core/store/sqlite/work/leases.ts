/** Leases in SQLite: the statements over `runners` and over leased rows of `jobs`. */
import type { LeaseStatements } from '../../operations/leases.ts';
import type { Job } from '../../operations/queue.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { JOB_COLUMNS } from './queue.ts';

export const leaseStatements = preparedOnce((tx: Tx): LeaseStatements => {
  const { db } = tx;
  const register = db.prepare<[object]>(`
    INSERT INTO runners (id, instance_id, address, updated_at)
    VALUES (@runnerId, @instanceId, @address, @at)
    ON CONFLICT (id) DO UPDATE
      SET instance_id = @instanceId, address = @address, updated_at = @at`);
  // Index jobs_by_runner.
  const heldByOthers = db.prepare<[object], Job>(`
    SELECT ${JOB_COLUMNS} FROM jobs
    WHERE state = 'running' AND runner_id = @runnerId AND instance_id <> @instanceId`);
  const renew = db.prepare<[object], Job>(`
    UPDATE jobs SET lease_until = @leaseUntil
    WHERE lease_id = @leaseId AND runner_id = @runnerId AND instance_id = @instanceId
    RETURNING ${JOB_COLUMNS}`);
  const lapsed = db.prepare<[object], Job>(`
    SELECT ${JOB_COLUMNS} FROM jobs WHERE state = 'running' AND lease_until < @at LIMIT @max`);
  const expired = db.prepare<[object], Job>(`
    SELECT ${JOB_COLUMNS} FROM jobs WHERE expires_at < @at LIMIT @max`);

  return {
    register: (runner) => void register.run(runner),
    heldByOthers: (holder) => found(heldByOthers.all(holder)),
    renew: (lease) => found(renew.get(lease)),
    lapsed: (wanted) => found(lapsed.all(wanted)),
    expired: (wanted) => found(expired.all(wanted)),
    recover: recovery(tx),
  };
});

function recovery({ db }: Tx): LeaseStatements['recover'] {
  const grace = db.prepare<[object]>(`
    UPDATE jobs SET lease_until = MAX(lease_until, @leaseUntil),
      expires_at = expires_at + MAX(0, @at - COALESCE((SELECT at FROM heartbeat), @at))
    WHERE state = 'running'`);
  const forget = db.prepare<[]>('UPDATE queues SET ready = 0, running = 0');
  const recount = db.prepare<[]>(`
    UPDATE queues SET ready = counted.ready, running = counted.running
    FROM (SELECT kind, project_id, SUM(state = 'ready') AS ready, SUM(state = 'running') AS running
      FROM jobs GROUP BY kind, project_id) AS counted
    WHERE queues.kind = counted.kind AND queues.project_id = counted.project_id`);
  return (wanted) => {
    grace.run(wanted);
    forget.run();
    recount.run();
  };
}
