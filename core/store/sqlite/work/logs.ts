/** Logs of invocations and builds in SQLite. Their rules: core/store/operations/logs.ts. */
import type { LogStatements } from '../../operations/logs.ts';
import type { LogOps } from '../../types/leases.ts';
import { queries, statements } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';

export function logStatements(tx: Tx): LogStatements {
  const { row, value, write } = statements(tx);
  return {
    ownerOf: value('SELECT id FROM jobs WHERE lease_id = ?'), // index jobs_by_lease
    head: row('SELECT next, bytes, cut FROM log_heads WHERE owner_id = ?'),
    saveHead: write(`
      INSERT INTO log_heads (owner_id, next, bytes, cut) VALUES (@ownerId, @next, @bytes, @cut)
      ON CONFLICT (owner_id) DO UPDATE SET next = @next, bytes = @bytes, cut = @cut`),
    insert: write(`
      INSERT INTO log_lines (owner_id, number, level, message, at)
      VALUES (@ownerId, @number, @level, @message, @at)`),
  };
}

export function logViews(tx: Tx): Pick<LogOps, 'listLogs'> {
  return {
    listLogs: queries(tx).rows(`
      SELECT message, at, level FROM log_lines WHERE owner_id = ? ORDER BY number`),
  };
}
