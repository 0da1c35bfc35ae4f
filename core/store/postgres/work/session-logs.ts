/**
 * Protocol logs of sessions in PostgreSQL: a row for each chunk, compressed as received. Their
 * rules: core/store/operations/logs.ts.
 */
import { oldIds } from '../../../common/ids.ts';
import type { HeldSessionLog, SessionLogStatements } from '../../operations/logs.ts';
import type { SessionLogChunk, SessionLogOps } from '../../types/sessions.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { hasOldId } from '../maintenance/old-ids.ts';
import { deleteSome } from '../maintenance/some.ts';
import { LATE_SESSION } from '../session-sql.ts';

export function sessionLogStatements(tx: Tx): SessionLogStatements {
  const { row, rows, write } = statements(tx);
  const insert = write<[object]>(`
    INSERT INTO session_logs (session_id, number, entries, count, size, at)
    VALUES (@sessionId, @number, @entries, @count, @size, @at)`);
  // Behind the locks of ../locks.ts. Index jobs_by_lease.
  const held = rows<[object], HeldSessionLog>(
    logIn(`
    SELECT jobs.lease_id AS "leaseId", jobs.project_id AS "projectId", COALESCE(
      (SELECT session_id FROM invocations WHERE invocations.id = jobs.id), jobs.id) AS "sessionId"
    FROM jobs
    WHERE jobs.lease_id = ANY(@leaseIds::TEXT[]) AND jobs.kind IN ('invocation', 'session')`),
  );
  const late = row<[object], HeldSessionLog>(
    logIn(`
    SELECT @leaseId::TEXT AS "leaseId", late.* FROM (${LATE_SESSION} FOR NO KEY UPDATE) AS late`),
  );
  return {
    under: (leaseIds, kinds) => held({ leaseIds, kinds }),
    lateUnder: late,
    saveHead: write(`
      INSERT INTO session_log_heads (session_id, next, size, full_at, at)
      VALUES (@sessionId, @next, @size, @fullAt, @at)
      ON CONFLICT (session_id) DO UPDATE
      SET next = @next, size = @size, full_at = @fullAt, at = @at`),
    /** A trigger counts what the project stores: all reports write that row. */
    insert: (chunk) => tx.atEnd(`4 ${chunk.projectId}`, () => insert(chunk)),
  };
}

/**
 * The logs of the sessions that the query selects, with what limits them. What is stored is not
 * locked: runners report for many sessions at once, and would wait for each other. A project may
 * exceed its quota by what is reported at the same time.
 */
function logIn(own: string): string {
  return `
    SELECT own.*, COALESCE(heads.next, 0) AS next, COALESCE(heads.size, 0) AS size,
      heads.full_at AS "fullAt",
      (SELECT value FROM quotas
        WHERE quotas.project_id = own."projectId" AND quota = 'logMib') AS "quotaMib",
      COALESCE((SELECT SUM(bytes)::BIGINT FROM stored
        WHERE stored.project_id = own."projectId" AND stored.kind = ANY(@kinds::TEXT[])), 0)
        AS stored
    FROM (${own}) AS own
      LEFT JOIN session_log_heads AS heads ON heads.session_id = own."sessionId"`;
}

/** In rows that one read examines. Ours. */
const CHUNKS_MAX = 10_000;

export function sessionLogOps(tx: Tx): InReads<Omit<SessionLogOps, 'appendSessionLog'>> {
  const { rows, value, changes } = statements(tx);
  // All of the first chunks whose sizes are at most `maxBytes` together, and always one.
  const read = rows<[object], SessionLogChunk>(`
    SELECT number, entries, count, size FROM (
      SELECT number, entries, count, size, SUM(size) OVER (ORDER BY number) AS total
      FROM session_logs WHERE session_id = @sessionId AND number >= @from
      ORDER BY number LIMIT ${CHUNKS_MAX}) AS first
    WHERE total <= @maxBytes OR number = (SELECT MIN(number) FROM session_logs
      WHERE session_id = @sessionId AND number >= @from)
    ORDER BY number`);
  const nextOf = value<[string, number], number>(
    'SELECT MIN(number) FROM session_logs WHERE session_id = ? AND number > ?',
  );
  const fullAtOf = value<[string], number | null>(
    'SELECT full_at FROM session_log_heads WHERE session_id = ?',
  );
  // Indexes session_logs_by_age and session_log_heads_by_age.
  const isOld = `at < @before AND ${hasOldId('session_id')}`;
  const purge = changes(
    deleteSome('session_logs', `session_logs WHERE ${isOld} ORDER BY at LIMIT @max`),
  );
  const purgeHeads = changes(
    deleteSome('session_log_heads', `session_log_heads WHERE ${isOld} LIMIT @max`),
  );

  return {
    *readSessionLog(wanted) {
      const { sessionId } = wanted;
      const chunks = yield* read(wanted);
      const last = chunks.at(-1);
      const next = last && (yield* nextOf(sessionId, last.number));
      if (next !== undefined && next !== null) return { chunks, next };
      const fullAt = (yield* fullAtOf(sessionId)) ?? null;
      return { chunks, ...(fullAt !== null && { fullAt }) };
    },

    *purgeSessionLogs({ max, ...age }) {
      const old = { ...oldIds(age), max };
      const purged = yield* purge(old);
      if (purged < max) yield* purgeHeads(old);
      return purged;
    },
  };
}
