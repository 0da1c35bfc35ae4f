/**
 * Protocol logs of sessions in SQLite: a row for each chunk, compressed as received. Their rules:
 * core/store/operations/logs.ts.
 */
import { oldIds } from '../../../common/ids.ts';
import type { HeldSessionLog, SessionLogStatements } from '../../operations/logs.ts';
import type { SessionLogChunk, SessionLogOps } from '../../types/sessions.ts';
import { frequentQueries, queries } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { hasOldId } from '../times.ts';
import { LATE_SESSION } from './sessions.ts';

export function sessionLogStatements(tx: Tx): SessionLogStatements {
  const { row, write } = frequentQueries(tx);
  // Index jobs_by_lease.
  const held = row<[object], HeldSessionLog>(
    logIn(`
    SELECT jobs.lease_id AS leaseId, COALESCE(invocations.session_id, jobs.id) AS sessionId,
      jobs.project_id AS projectId
    FROM jobs LEFT JOIN invocations ON invocations.id = jobs.id
    WHERE jobs.lease_id = @leaseId AND jobs.kind IN ('invocation', 'session')`),
  );
  const late = row<[object], HeldSessionLog>(
    logIn(`SELECT @leaseId AS leaseId, late.* FROM (${LATE_SESSION}) AS late`),
  );
  return {
    under(leaseIds, kinds) {
      const ofKinds = JSON.stringify(kinds);
      return found(leaseIds.flatMap((leaseId) => held({ leaseId, kinds: ofKinds }) ?? []));
    },
    lateUnder: ({ kinds, ...lease }) => found(late({ ...lease, kinds: JSON.stringify(kinds) })),
    saveHead: write(`
      INSERT INTO session_log_heads (session_id, next, size, full_at, at)
      VALUES (@sessionId, @next, @size, @fullAt, @at)
      ON CONFLICT (session_id) DO UPDATE
      SET next = @next, size = @size, full_at = @fullAt, at = @at`),
    insert: write(`
      INSERT INTO session_logs (session_id, number, entries, count, size, at)
      VALUES (@sessionId, @number, @entries, @count, @size, @at)`),
  };
}

/** The log of the session that the query selects, with what limits it. */
function logIn(own: string): string {
  return `
    SELECT own.*, COALESCE(heads.next, 0) AS next, COALESCE(heads.size, 0) AS size,
      heads.full_at AS fullAt,
      (SELECT value FROM quotas
        WHERE quotas.project_id = own.projectId AND quota = 'logMib') AS quotaMib,
      COALESCE((SELECT SUM(bytes) FROM stored
        WHERE stored.project_id = own.projectId
          AND stored.kind IN (SELECT value FROM json_each(@kinds))), 0) AS stored
    FROM (${own}) AS own
      LEFT JOIN session_log_heads AS heads ON heads.session_id = own.sessionId`;
}

export function sessionLogOps(tx: Tx): Omit<SessionLogOps, 'appendSessionLog'> {
  const { value, changes } = queries(tx);
  const from = tx.db.prepare<[string, number], SessionLogChunk>(`
    SELECT number, entries, count, size FROM session_logs
    WHERE session_id = ? AND number >= ? ORDER BY number`);
  const fullAtOf = value<[string], number | null>(
    'SELECT full_at FROM session_log_heads WHERE session_id = ?',
  );
  // Indexes session_logs_by_age and session_log_heads_by_age.
  const isOld = `at < @before AND ${hasOldId('session_id')}`;
  const purge = changes(`
    DELETE FROM session_logs WHERE rowid IN (
      SELECT rowid FROM session_logs WHERE ${isOld} ORDER BY at LIMIT @max)`);
  const purgeHeads = changes(`
    DELETE FROM session_log_heads WHERE session_id IN (
      SELECT session_id FROM session_log_heads WHERE ${isOld} LIMIT @max)`);

  return {
    readSessionLog({ sessionId, from: first, maxBytes }) {
      const chunks: SessionLogChunk[] = [];
      let size = 0;
      for (const chunk of from.iterate(sessionId, first)) {
        if (size > 0 && size + chunk.size > maxBytes) return { chunks, next: chunk.number };
        chunks.push(chunk);
        size += chunk.size;
      }
      const fullAt = fullAtOf(sessionId) ?? null;
      return { chunks, ...(fullAt !== null && { fullAt }) };
    },

    purgeSessionLogs({ max, ...age }) {
      const old = { ...oldIds(age), max };
      const purged = purge(old);
      if (purged < max) purgeHeads(old);
      return purged;
    },
  };
}
