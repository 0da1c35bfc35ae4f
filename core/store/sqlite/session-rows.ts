/** A session's row as SQLite has it, and as the rest of core sees it. */
import type { SessionRow } from '../types/sessions.ts';

export type StoredSession = Omit<SessionRow, 'keepAlive'> & { keepAlive: number };

export const SESSION_COLUMNS = `id, project_id AS projectId, status, region,
  context_id AS contextId, keep_alive AS keepAlive, proxy_bytes AS proxyBytes,
  user_metadata AS userMetadata, params, created_at AS createdAt, updated_at AS updatedAt,
  started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt, end_reason AS endReason`;

export function wholeSession(row: StoredSession): SessionRow {
  return { ...row, keepAlive: row.keepAlive === 1 };
}
