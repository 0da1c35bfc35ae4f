/**
 * Sessions in SQLite, with their moves: PENDING -> RUNNING -> COMPLETED | TIMED_OUT | ERROR
 * (PENDING may end at once). The moves are called inside the operation that moves the session's
 * invocation, or the session itself where a user started it.
 */
import type { ListedSession, SessionOps, SessionRow, SessionStatus } from '../../types/sessions.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

export function sessionOps(tx: Tx): SessionOps {
  return {
    getSession: sessionReader(tx),
    listSessions: sessionList(tx),
  };
}

export const sessionReader = preparedOnce(({ db }: Tx): SessionOps['getSession'] => {
  const byId = db.prepare<[object], StoredSession>(`
    SELECT ${SESSION_COLUMNS} FROM sessions WHERE id = @id AND project_id = @projectId`);
  return (wanted) => {
    const row = byId.get(wanted);
    return row && wholeSession(row);
  };
});

export type NewSession = {
  id: string;
  projectId: string;
  region: string;
  contextId: string | null;
  userMetadata: string | null;
  params: string;
  /** As SQLite has booleans. */
  keepAlive: 0 | 1;
  extensionId: string | null;
  /** From its start; null for an invocation's. */
  timeoutMs: number | null;
  at: number;
  expiresAt: number;
};

export type SessionEnd = {
  id: string;
  status: SessionStatus;
  /** When its Chrome was ready, where the invocation's runner said so only now. */
  startedAt?: number | null;
  /** One sentence for its user. */
  reason?: string;
  proxyBytes?: number;
  /** The lease whose runner said so. */
  leaseId?: string;
  at: number;
};

/** What happens to a session inside a larger operation. */
export type SessionMoves = {
  isPending(id: string): boolean;
  open(session: NewSession): void;
  /** With its invocation. */
  start(wanted: { id: string; at: number; expiresAt: number }): void;
  /** One that a user started; gives when its time is over. Undefined when it was not PENDING. */
  startOwn(wanted: { id: string; startedAt: number; at: number }): number | undefined;
  /** Once ended it stays as it is. */
  end(wanted: SessionEnd): void;
};

export const sessionMoves = preparedOnce((tx: Tx): SessionMoves => {
  const { db, wake } = tx;
  const addMetadata = metadataIndex(tx);
  const pending = db.prepare<[string]>(
    `SELECT 1 FROM sessions WHERE id = ? AND status = 'PENDING'`,
  );
  const open = db.prepare<[NewSession]>(`
    INSERT INTO sessions (id, project_id, status, region, context_id, extension_id, keep_alive,
      user_metadata, params, timeout_ms, created_at, updated_at, expires_at)
    VALUES (@id, @projectId, 'PENDING', @region, @contextId, @extensionId, @keepAlive,
      @userMetadata, @params, @timeoutMs, @at, @at, @expiresAt)`);
  const start = db
    .prepare<[object], number>(`
      UPDATE sessions SET status = 'RUNNING', started_at = MAX(@startedAt, created_at),
        expires_at = COALESCE(@expiresAt, MAX(@startedAt, created_at) + timeout_ms),
        updated_at = @at
      WHERE id = @id AND status = 'PENDING'
      RETURNING expires_at`)
    .pluck();
  const end = db.prepare<[object]>(`
    UPDATE sessions SET status = @status, started_at = COALESCE(@startedAt, started_at),
      end_reason = @reason, proxy_bytes = proxy_bytes + @proxyBytes, ended_lease_id = @leaseId,
      ended_at = @at, updated_at = @at
    WHERE id = @id AND status IN ('PENDING', 'RUNNING')`);

  return {
    isPending: (id) => pending.get(id) !== undefined,
    open(session) {
      open.run(session);
      addMetadata(session);
    },
    start(wanted) {
      start.get({ ...wanted, startedAt: wanted.at });
      wake('sessions');
    },
    startOwn(wanted) {
      const expiresAt = start.get({ ...wanted, expiresAt: null });
      wake('sessions');
      return expiresAt;
    },
    end({ startedAt = null, reason = null, proxyBytes = 0, leaseId = null, ...wanted }: Ended) {
      end.run({ ...wanted, startedAt, reason, proxyBytes, leaseId });
      wake('sessions');
    },
  };
});

type Ended = Omit<SessionEnd, 'reason' | 'leaseId'> & {
  reason?: string | null;
  leaseId?: string | null;
};

/** Writes down each text of a session's metadata, with the keys that lead to it. */
function metadataIndex({ db }: Tx): (session: NewSession) => void {
  const insert = db.prepare<[object]>(`
    INSERT INTO session_metadata (project_id, path, value, session_id)
    VALUES (@projectId, @path, @value, @id)`);
  return ({ id, projectId, userMetadata }) => {
    if (userMetadata === null) return;
    for (const [keys, value] of textsOf(JSON.parse(userMetadata), [])) {
      insert.run({ id, projectId, path: JSON.stringify(keys), value });
    }
  };
}

function textsOf(value: unknown, keys: string[]): [string[], string][] {
  if (typeof value === 'string') return [[keys, value]];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => textsOf(member, [...keys, key]));
}

export function sessionList({ db }: Tx): SessionOps['listSessions'] {
  const newest = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId ORDER BY id DESC LIMIT @max`); // index sessions_by_project
  const ofStatus = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId AND status = @status
    ORDER BY id DESC LIMIT @max`); // index sessions_by_status
  // By the key of session_metadata. CROSS JOIN keeps this order of the two tables.
  const found = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS}
    FROM (SELECT session_id FROM session_metadata
      WHERE project_id = @projectId AND path = @path AND value = @value) AS found
    CROSS JOIN sessions ON sessions.id = found.session_id
    WHERE @status IS NULL OR status = @status
    ORDER BY found.session_id DESC LIMIT @max`);
  // Index sessions_by_status.
  const foundOfStatus = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId AND status = @status
      AND EXISTS (SELECT 1 FROM session_metadata
        WHERE project_id = @projectId AND path = @path AND value = @value
          AND session_id = sessions.id)
    ORDER BY id DESC LIMIT @max`);

  return ({ projectId, status = null, metadata, max }) => {
    const wanted = { projectId, status, max };
    if (!metadata) return (status === null ? newest : ofStatus).all(wanted).map(listedSession);
    const { keys, value } = metadata;
    // Nearly all sessions are COMPLETED: of these the metadata tells more than the status.
    const rows = status === null || status === 'COMPLETED' ? found : foundOfStatus;
    return rows.all({ ...wanted, path: JSON.stringify(keys), value }).map(listedSession);
  };
}

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
