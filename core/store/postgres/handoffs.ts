/** Handoffs in PostgreSQL. Their rules: core/store/operations/sessions/handoffs.ts. */
import type { HandoffStatements } from '../operations/sessions/handoffs.ts';
import type { HandoffOps, HandoffRow } from '../types/sessions.ts';
import { statements } from './engine/statements.ts';
import { found, type InReads } from './engine/steps.ts';
import type { Tx } from './engine/transaction.ts';
import { HANDOFF, SESSION_OF_LEASE } from './session-sql.ts';
import { rowsBefore } from './work/before.ts';
import { sessionStatements } from './work/sessions.ts';

const OWNED = 'id = @id AND session_id = @sessionId AND project_id = @projectId';

export function handoffStatements(tx: Tx): HandoffStatements {
  const { row, returned, value, values, number, write } = statements(tx);
  // Index handoffs_by_session.
  const expireOf = row<[object], HandoffRow>(`
    UPDATE handoffs SET status = 'EXPIRED', ended_at = @at
    WHERE session_id = @sessionId AND status = 'PENDING' RETURNING ${HANDOFF}`);
  const expire = write<[object]>(
    'UPDATE handoffs SET status = @status, ended_at = @endedAt WHERE id = @id',
  );
  return {
    insert: returned(`
      INSERT INTO handoffs (id, project_id, session_id, status, instructions, key_id, created_at,
        expires_at)
      VALUES (@id, @projectId, @sessionId, 'PENDING', @instructions, @keyId, @at, @expiresAt)
      RETURNING ${HANDOFF}`),
    read: row(`SELECT ${HANDOFF} FROM handoffs WHERE ${OWNED}`),
    // Index handoffs_by_session; a session has at most 100.
    pendingOf: value(`
      SELECT id FROM handoffs WHERE session_id = ? AND status = 'PENDING' LIMIT 1`),
    countOf: number('SELECT COUNT(*) FROM handoffs WHERE session_id = ?'),
    end: row(`
      UPDATE handoffs SET status = @status, ended_at = @at
      WHERE id = @id AND status = 'PENDING' RETURNING ${HANDOFF}`),
    expireOf(wanted) {
      const session = rowsBefore(tx).sessions.get(wanted.sessionId);
      if (!session) return expireOf(wanted);
      const { handoff } = session;
      if (handoff === null) return found(undefined);
      const expired = { ...handoff, status: 'EXPIRED' as const, endedAt: wanted.at };
      expire(expired);
      return found(expired);
    },
    // Index handoffs_pending. The end of a session, which holds its handoff, ends it itself: it
    // would wait for the project that a sweep holds, and the sweep for it.
    due: values(`
      SELECT id FROM handoffs WHERE status = 'PENDING' AND expires_at <= @at
      ORDER BY expires_at LIMIT @max FOR UPDATE SKIP LOCKED`),
    session: sessionStatements(tx).read,
  };
}

export function handoffViews(
  tx: Tx,
): InReads<Omit<HandoffOps, 'createHandoff' | 'endHandoff' | 'leasedHandoffs'>> {
  const { row, rows, exists } = statements(tx);
  return {
    isHandoffPending: exists(`SELECT 1 FROM handoffs WHERE id = ? AND status = 'PENDING'`),
    getHandoff: row(`SELECT ${HANDOFF} FROM handoffs WHERE ${OWNED}`),
    listHandoffs: rows(`
      SELECT ${HANDOFF} FROM handoffs
      WHERE session_id = @sessionId AND project_id = @projectId ORDER BY id DESC LIMIT @max`),
    endedHandoffs: rows(`
      SELECT id, status FROM handoffs WHERE id = ANY(?::TEXT[]) AND status <> 'PENDING'`),
    sessionOfLease: row(SESSION_OF_LEASE),
  };
}
