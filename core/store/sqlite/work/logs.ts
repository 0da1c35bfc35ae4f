/** Logs of invocations and builds in SQLite. Their rules: core/store/operations/logs.ts. */
import type { HeldLog, LogStatements } from '../../operations/logs.ts';
import type { LogOps } from '../../types/leases.ts';
import { frequentQueries, queries } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

export function logStatements(tx: Tx): LogStatements {
  const { row, write } = frequentQueries(tx);
  // Index jobs_by_lease.
  const held = row<[string], HeldLog>(`
    SELECT jobs.lease_id AS leaseId, jobs.id AS ownerId, COALESCE(next, 0) AS next,
      COALESCE(bytes, 0) AS bytes, COALESCE(cut, 0) AS cut
    FROM jobs LEFT JOIN log_heads ON log_heads.owner_id = jobs.id WHERE jobs.lease_id = ?`);
  const insert = write<[string, number, string, string, number]>(`
    INSERT INTO log_lines (owner_id, number, level, message, at) VALUES (?, ?, ?, ?, ?)`);
  return {
    under: (leaseIds) => found(leaseIds.flatMap((leaseId) => held(leaseId) ?? [])),
    saveHead: write(`
      INSERT INTO log_heads (owner_id, next, bytes, cut) VALUES (@ownerId, @next, @bytes, @cut)
      ON CONFLICT (owner_id) DO UPDATE SET next = @next, bytes = @bytes, cut = @cut`),
    insert(ownerId, lines) {
      for (const { number, level, message, at } of lines) {
        insert(ownerId, number, level, message, at);
      }
    },
  };
}

export function logViews(tx: Tx): Pick<LogOps, 'listLogs'> {
  return {
    listLogs: queries(tx).rows(`
      SELECT message, at, level FROM log_lines WHERE owner_id = ? ORDER BY number`),
  };
}
