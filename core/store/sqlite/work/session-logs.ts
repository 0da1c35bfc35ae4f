/**
 * Protocol logs of sessions in SQLite: a row for each chunk, compressed as it came. A head says
 * which one comes next, so that a repeated append changes nothing.
 */
import { invalidField } from '../../../../proto/rpc/errors.ts';
import { oldIds } from '../../../common/ids.ts';
import type { SessionLogChunk, SessionLogOps } from '../../types/sessions.ts';
import type { Tx } from '../engine/transaction.ts';
import { storedSums } from '../storage.ts';
import { hasOldId } from '../times.ts';

type Head = { next: number; size: number; fullAt: number | null };

export function sessionLogOps(tx: Tx): SessionLogOps {
  const { db, crashPoint } = tx;
  const sessionOf = db.prepare<[string], { sessionId: string; projectId: string }>(`
      SELECT COALESCE(invocations.session_id, jobs.id) AS sessionId, jobs.project_id AS projectId
      FROM jobs LEFT JOIN invocations ON invocations.id = jobs.id
      WHERE jobs.lease_id = ? AND jobs.kind IN ('invocation', 'session')`); // index jobs_by_lease
  const { hasRoom } = storedSums(tx);
  const headOf = db.prepare<[string], Head>(`
    SELECT next, size, full_at AS fullAt FROM session_log_heads WHERE session_id = ?`);
  const saveHead = db.prepare<[object]>(`
    INSERT INTO session_log_heads (session_id, next, size, full_at, at)
    VALUES (@sessionId, @next, @size, @fullAt, @at)
    ON CONFLICT (session_id) DO UPDATE
    SET next = @next, size = @size, full_at = @fullAt, at = @at`);
  const insert = db.prepare<[object]>(`
    INSERT INTO session_logs (session_id, number, entries, count, size, at)
    VALUES (@sessionId, @number, @entries, @count, @size, @at)`);
  const from = db.prepare<[string, number], SessionLogChunk>(`
    SELECT number, entries, count, size FROM session_logs
    WHERE session_id = ? AND number >= ? ORDER BY number`);
  // Indexes session_logs_by_age and session_log_heads_by_age.
  const isOld = `at < @before AND ${hasOldId('session_id')}`;
  const purge = db.prepare<[object]>(`
    DELETE FROM session_logs WHERE rowid IN (
      SELECT rowid FROM session_logs WHERE ${isOld} ORDER BY at LIMIT @max)`);
  const purgeHeads = db.prepare<[object]>(`
    DELETE FROM session_log_heads WHERE session_id IN (
      SELECT session_id FROM session_log_heads WHERE ${isOld} LIMIT @max)`);

  return {
    appendSessionLog({ leaseId, maxBytes, within, at, ...chunk }) {
      const found = sessionOf.get(leaseId);
      if (!found) return 'lost';
      const { sessionId, projectId } = found;
      const head = headOf.get(sessionId) ?? { next: 0, size: 0, fullAt: null };
      if (head.fullAt !== null) return 'full';
      if (chunk.number > head.next) throw invalidField('number', `must be at most ${head.next}.`);
      if (chunk.number < head.next) return 'kept';
      const isOver = within && !hasRoom(projectId, chunk.entries.byteLength, within);
      if (isOver || head.size + chunk.size > maxBytes) {
        saveHead.run({ ...head, sessionId, fullAt: at, at });
        return 'full';
      }
      insert.run({ ...chunk, sessionId, at });
      crashPoint('append-session-log');
      const size = head.size + chunk.size;
      saveHead.run({ sessionId, next: head.next + 1, size, fullAt: null, at });
      return 'kept';
    },

    readSessionLog({ sessionId, from: first, maxBytes }) {
      const chunks: SessionLogChunk[] = [];
      let size = 0;
      for (const chunk of from.iterate(sessionId, first)) {
        if (size > 0 && size + chunk.size > maxBytes) return { chunks, next: chunk.number };
        chunks.push(chunk);
        size += chunk.size;
      }
      const fullAt = headOf.get(sessionId)?.fullAt ?? null;
      return { chunks, ...(fullAt === null ? {} : { fullAt }) };
    },

    purgeSessionLogs({ max, ...age }) {
      const old = { ...oldIds(age), max };
      const { changes } = purge.run(old);
      if (changes < max) purgeHeads.run(old);
      return changes;
    },
  };
}
