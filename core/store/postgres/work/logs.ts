/** Logs of invocations and builds in PostgreSQL. Their rules: core/store/operations/logs.ts. */
import type { HeldLog, LogStatements } from '../../operations/logs.ts';
import type { LogOps } from '../../types/leases.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

export function logStatements(tx: Tx): LogStatements {
  const { rows, write } = statements(tx);
  // Behind the locks of ../locks.ts. Index jobs_by_lease.
  const under = rows<[readonly string[]], HeldLog>(`
    SELECT jobs.lease_id AS "leaseId", jobs.id AS "ownerId", COALESCE(next, 0) AS next,
      COALESCE(bytes, 0) AS bytes, COALESCE(cut, 0) AS cut
    FROM jobs LEFT JOIN log_heads ON log_heads.owner_id = jobs.id
    WHERE jobs.lease_id = ANY(?::TEXT[])`);
  // Arrays of the same length: a line in each place.
  const insert = write<[object]>(`
    INSERT INTO log_lines (owner_id, number, level, message, at)
    SELECT @ownerId, one.number, one.level, one.message, one.at::DOUBLE PRECISION
    FROM unnest(@numbers::BIGINT[], @levels::TEXT[], @messages::TEXT[], @times::TEXT[])
      AS one (number, level, message, at)`);
  return {
    under,
    saveHead: write(`
      INSERT INTO log_heads (owner_id, next, bytes, cut) VALUES (@ownerId, @next, @bytes, @cut)
      ON CONFLICT (owner_id) DO UPDATE SET next = @next, bytes = @bytes, cut = @cut`),
    insert: (ownerId, lines) =>
      insert({
        ownerId,
        numbers: lines.map(({ number }) => number),
        levels: lines.map(({ level }) => level),
        messages: lines.map(({ message }) => message),
        times: lines.map(({ at }) => at),
      }),
  };
}

export function logViews(tx: Tx): InReads<Pick<LogOps, 'listLogs'>> {
  return {
    listLogs: statements(tx).rows(`
      SELECT message, at, level FROM log_lines WHERE owner_id = ? ORDER BY number`),
  };
}
