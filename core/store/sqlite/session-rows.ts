/** A session's row as SQLite has it, and as the rest of core sees it. */
import type { ListedSession, SessionRow } from '../types/sessions.ts';

type Stored<Row> = Omit<Row, 'keepAlive'> & { keepAlive: number };
export type StoredSession = Stored<SessionRow>;
export type StoredListed = Stored<ListedSession>;

export const LISTED_COLUMNS = `id, project_id AS projectId, status, region,
  context_id AS contextId, keep_alive AS keepAlive, proxy_bytes AS proxyBytes,
  user_metadata AS userMetadata, created_at AS createdAt, updated_at AS updatedAt,
  started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt, end_reason AS endReason`;

export const SESSION_COLUMNS = `${LISTED_COLUMNS}, params`;

export function wholeSession<Row extends StoredListed>(
  row: Row,
): Omit<Row, 'keepAlive'> & { keepAlive: boolean } {
  return { ...row, keepAlive: row.keepAlive === 1 };
}
