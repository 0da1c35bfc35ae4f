/** Sessions in SQLite. Their lifecycle: core/store/operations/sessions.ts, session-lifecycle.ts. */
import { must } from '../../../../proto/common/must.ts';
import type { SessionStatements } from '../../operations/sessions.ts';
import { openStates, SESSION, statesBefore } from '../../operations/states.ts';
import type {
  ListedSession,
  LocatedSession,
  SessionLifeOps,
  SessionOps,
  SessionRow,
} from '../../types/sessions.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { inStates } from './states.ts';

export function sessionOps(tx: Tx): SessionOps {
  return {
    getSession: sessionReader(tx),
    listSessions: sessionList(tx),
  };
}

const sessionReader = preparedOnce(({ db }: Tx): SessionOps['getSession'] => {
  const byId = db.prepare<[object], StoredSession>(`
    SELECT ${SESSION_COLUMNS} FROM sessions WHERE id = @id AND project_id = @projectId`);
  return (wanted) => {
    const row = byId.get(wanted);
    return row && wholeSession(row);
  };
});

export const sessionStatements = preparedOnce((tx: Tx): SessionStatements => {
  const { db } = tx;
  const read = sessionReader(tx);
  const insert = db.prepare<[object]>(`
    INSERT INTO sessions (id, project_id, status, region, context_id, extension_id, keep_alive,
      user_metadata, params, timeout_ms, created_at, updated_at, expires_at)
    VALUES (@id, @projectId, 'PENDING', @region, @contextId, @extensionId, @keepAlive,
      @userMetadata, @params, @timeoutMs, @at, @at, @expiresAt)`);
  const addMetadata = db.prepare<[object]>(`
    INSERT INTO session_metadata (project_id, path, value, session_id)
    VALUES (@projectId, @path, @value, @id)`);
  const isPending = db.prepare<[string]>(
    `SELECT 1 FROM sessions WHERE id = ? AND status = 'PENDING'`,
  );
  const start = db
    .prepare<[object], number>(`
      UPDATE sessions SET status = 'RUNNING', started_at = MAX(@startedAt, created_at),
        expires_at = COALESCE(@expiresAt, MAX(@startedAt, created_at) + timeout_ms),
        updated_at = @at
      WHERE id = @id AND status ${inStates(statesBefore(SESSION, 'RUNNING'))}
      RETURNING expires_at`)
    .pluck();
  const end = db.prepare<[object]>(`
    UPDATE sessions SET status = @status, started_at = COALESCE(@startedAt, started_at),
      end_reason = @reason, proxy_bytes = proxy_bytes + @proxyBytes, ended_lease_id = @leaseId,
      ended_at = @at, updated_at = @at
    WHERE id = @id AND status ${inStates(openStates(SESSION))}`);

  return {
    ...limitStatements(tx),
    ...referenceStatements(tx),
    insert: (session) => void insert.run({ ...session, keepAlive: session.keepAlive ? 1 : 0 }),
    addMetadata: (text) => void addMetadata.run(text),
    read: (wanted) => found(read(wanted)),
    isPending: (id) => found(isPending.get(id) !== undefined),
    start: (wanted) => found(start.get(wanted)),
    end: (wanted) => void end.run(wanted),
  };
});

type ReferenceNames = 'isOfInvocation' | 'endedBy' | 'releasedLeases';

function referenceStatements({ db }: Tx): Pick<SessionStatements, ReferenceNames> {
  const ofInvocation = db.prepare<[string]>('SELECT 1 FROM invocations WHERE session_id = ?');
  const ended = db.prepare<[string]>('SELECT 1 FROM sessions WHERE ended_lease_id = ?');
  // Index jobs_released.
  const released = db
    .prepare<[object], string>(`
      SELECT lease_id FROM jobs
      WHERE released_at IS NOT NULL AND runner_id = @runnerId AND instance_id = @instanceId`)
    .pluck();
  return {
    isOfInvocation: (id) => found(ofInvocation.get(id) !== undefined),
    endedBy: (leaseId) => found(ended.get(leaseId) !== undefined),
    releasedLeases: (holder) => found(released.all(holder)),
  };
}

function limitStatements({ db }: Tx): Pick<SessionStatements, 'defaultTimeout' | 'limit'> {
  const timeout = db
    .prepare<[string], number>('SELECT default_timeout FROM projects WHERE id = ?')
    .pluck();
  // Index jobs_in_limit.
  const limit = db.prepare<[object], { limit: number; current: number }>(`
    SELECT concurrency AS "limit", (SELECT COUNT(*) FROM jobs
      WHERE project_id = @id AND kind = 'session' AND released_at IS NULL) AS current
    FROM projects WHERE id = @id`);
  return {
    defaultTimeout: (id) => found(must(timeout.get(id), 'project of a key')),
    limit: (id) => found(must(limit.get({ id }), 'project of a key')),
  };
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
  const matching = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS}
    FROM (SELECT session_id FROM session_metadata
      WHERE project_id = @projectId AND path = @path AND value = @value) AS found
    CROSS JOIN sessions ON sessions.id = found.session_id
    WHERE @status IS NULL OR status = @status
    ORDER BY found.session_id DESC LIMIT @max`);
  // Index sessions_by_status.
  const matchingOfStatus = db.prepare<[object], StoredListed>(`
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
    const rows = status === null || status === 'COMPLETED' ? matching : matchingOfStatus;
    return rows.all({ ...wanted, path: JSON.stringify(keys), value }).map(listedSession);
  };
}

/** Any session by its id: the caller has proved that it may. */
export function sessionLocation({ db }: Tx): Pick<SessionLifeOps, 'locateSession'> {
  const located = db.prepare<[string], Omit<LocatedSession, 'isReleased'> & { released: number }>(`
    SELECT sessions.project_id AS projectId, sessions.status AS status,
      runners.address AS address, jobs.released_at IS NOT NULL AS released
    FROM sessions
    LEFT JOIN invocations ON invocations.session_id = sessions.id
    LEFT JOIN jobs ON jobs.id = COALESCE(invocations.id, sessions.id)
    LEFT JOIN runners ON runners.id = jobs.runner_id AND runners.instance_id = jobs.instance_id
    WHERE sessions.id = ?`);
  return {
    locateSession(id) {
      const row = located.get(id);
      if (!row) return undefined;
      const { released, ...rest } = row;
      return { ...rest, isReleased: released === 1 };
    },
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
