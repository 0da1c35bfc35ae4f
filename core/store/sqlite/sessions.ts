/**
 * Sessions in SQLite, with their moves: PENDING -> RUNNING -> COMPLETED | TIMED_OUT | ERROR
 * (PENDING may end at once). The moves are called inside the operation that moves the session's
 * invocation.
 */
import type { SessionOps, SessionRow, SessionStatus } from '../types/sessions.ts';
import type { Tx } from './tx.ts';

type Flat = Omit<SessionRow, 'keepAlive'> & { keepAlive: number };

const COLUMNS = `id, project_id AS projectId, status, region, context_id AS contextId,
  keep_alive AS keepAlive, proxy_bytes AS proxyBytes, user_metadata AS userMetadata, params,
  created_at AS createdAt, updated_at AS updatedAt, started_at AS startedAt, ended_at AS endedAt,
  expires_at AS expiresAt`;

export function sessionOps({ db }: Tx): SessionOps {
  const byId = db.prepare<[object], Flat>(`
    SELECT ${COLUMNS} FROM sessions WHERE id = @id AND project_id = @projectId`);
  const newest = db.prepare<[object], Flat>(`
    SELECT ${COLUMNS} FROM sessions
    WHERE project_id = @projectId AND (@status IS NULL OR status = @status)
    ORDER BY id DESC LIMIT @max`); // index sessions_by_project
  const logs = db
    .prepare<[string], string>(
      'SELECT entry FROM session_logs WHERE session_id = ? ORDER BY number',
    )
    .pluck();
  const recordings = db.prepare<[string], ReturnType<SessionOps['listRecordings']>[number]>(`
    SELECT page_id AS pageId, status, completed_at AS completedAt
    FROM recordings WHERE session_id = ? ORDER BY page_id`);

  return {
    getSession(wanted) {
      const row = byId.get(wanted);
      return row && whole(row);
    },
    listSessions: (wanted) => newest.all({ ...wanted, status: wanted.status ?? null }).map(whole),
    listSessionLogs: (sessionId) => logs.all(sessionId),
    listRecordings: (sessionId) => recordings.all(sessionId),
  };
}

function whole(row: Flat): SessionRow {
  return { ...row, keepAlive: row.keepAlive === 1 };
}

export type NewSession = {
  id: string;
  projectId: string;
  region: string;
  contextId: string | null;
  userMetadata: string | null;
  params: string;
  at: number;
  expiresAt: number;
};

/** What happens to a session inside a larger operation. */
export type SessionMoves = {
  open(session: NewSession): void;
  start(wanted: { id: string; at: number; expiresAt: number }): void;
  /** `startedAt`: when its Chrome was ready, where known. Once ended it stays as it is. */
  end(wanted: { id: string; status: SessionStatus; startedAt: number | null; at: number }): void;
};

export function sessionMoves({ db }: Tx): SessionMoves {
  const open = db.prepare<[NewSession]>(`
    INSERT INTO sessions (id, project_id, status, region, context_id, user_metadata, params,
      created_at, updated_at, expires_at)
    VALUES (@id, @projectId, 'PENDING', @region, @contextId, @userMetadata, @params,
      @at, @at, @expiresAt)`);
  const start = db.prepare<[object]>(`
    UPDATE sessions SET status = 'RUNNING', started_at = @at, updated_at = @at,
      expires_at = @expiresAt
    WHERE id = @id AND status = 'PENDING'`);
  const end = db.prepare<[object]>(`
    UPDATE sessions SET status = @status, started_at = COALESCE(@startedAt, started_at),
      ended_at = @at, updated_at = @at
    WHERE id = @id AND status IN ('PENDING', 'RUNNING')`);

  return {
    open: (session) => void open.run(session),
    start: (wanted) => void start.run(wanted),
    end: (wanted) => void end.run(wanted),
  };
}
