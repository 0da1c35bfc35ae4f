/** A session's row as SQLite has it, and as the rest of core sees it. */
import type { ListedSession, SessionRow } from '../../types/sessions.ts';

/** SQLite has no booleans. */
type Stored<Row> = { [K in keyof Row]: Row[K] extends boolean ? number : Row[K] };
export type StoredSession = Stored<SessionRow>;
export type StoredListed = Stored<ListedSession>;

export const LISTED_COLUMNS = `id, project_id AS projectId, status, region,
  context_id AS contextId, keep_alive AS keepAlive, proxy_bytes AS proxyBytes,
  user_metadata AS userMetadata, created_at AS createdAt, updated_at AS updatedAt,
  started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt, end_reason AS endReason`;

/** An invocation's session has its job under the invocation's id. */
export const SESSION_COLUMNS = `${LISTED_COLUMNS}, params, EXISTS (
    SELECT 1 FROM jobs WHERE released_at IS NOT NULL AND jobs.id = COALESCE(
      (SELECT invocations.id FROM invocations WHERE session_id = sessions.id), sessions.id)
  ) AS isReleased`;

export function listedSession(row: StoredListed): ListedSession {
  return { ...row, keepAlive: row.keepAlive === 1 };
}

export function wholeSession(row: StoredSession): SessionRow {
  return { ...row, keepAlive: row.keepAlive === 1, isReleased: row.isReleased === 1 };
}
