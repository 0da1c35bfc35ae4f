/** Sessions in SQLite. Their lifecycle: core/store/operations/sessions. */
import type { SessionStatements } from '../../operations/sessions/sessions.ts';
import { openStates, SESSION, statesBefore } from '../../operations/states.ts';
import type { Read } from '../../operations/steps.ts';
import type {
  ListedSession,
  LocatedSession,
  SessionLifeOps,
  SessionOps,
  SessionRow,
} from '../../types/sessions.ts';
import { frequentQueries, inStates, queries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { LABELS_OF_SESSION, sortedLabels } from './labels.ts';

/** SQLite has no booleans, and a list is JSON. */
type Stored<Row> = {
  [K in keyof Row]: Row[K] extends boolean ? number : Row[K] extends string[] ? string : Row[K];
};
/** Ours: sessions of one label that a list with several conditions examines, in some 50 ms. */
const LABELLED_MAX = 5_000;

const LISTED_COLUMNS = `id, project_id AS projectId, status, region,
  context_id AS contextId, keep_alive AS keepAlive, proxy_bytes AS proxyBytes,
  user_metadata AS userMetadata, created_at AS createdAt, updated_at AS updatedAt,
  started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt, end_reason AS endReason,
  ${LABELS_OF_SESSION}`;

/** Whether the session has ended and has recordings, all of them complete. */
export const IS_RECORDED = `
  SELECT 1 FROM sessions
  WHERE id = ? AND ended_at IS NOT NULL
    AND EXISTS (SELECT 1 FROM recordings WHERE session_id = sessions.id)
    AND NOT EXISTS (
      SELECT 1 FROM recordings WHERE session_id = sessions.id AND completed_at IS NULL)`;

/** An invocation's session has its job under the invocation's id. */
const SESSION_COLUMNS = `${LISTED_COLUMNS}, params, EXISTS (
    SELECT 1 FROM jobs WHERE released_at IS NOT NULL AND jobs.id = COALESCE(
      (SELECT invocations.id FROM invocations WHERE session_id = sessions.id), sessions.id)
  ) AS isReleased`;

export function sessionOps(tx: Tx): SessionOps & Pick<SessionLifeOps, 'locateSession'> {
  return {
    getSession: sessionReader(tx),
    listSessions: sessionList(tx),
    locateSession: sessionLocation(tx),
  };
}

const sessionReader = preparedOnce((tx: Tx): SessionOps['getSession'] => {
  const byId = frequentQueries(tx).row<[object], Stored<SessionRow>>(`
    SELECT ${SESSION_COLUMNS} FROM sessions WHERE id = @id AND project_id = @projectId`);
  return (wanted) => {
    const row = byId(wanted);
    if (row === undefined) return undefined;
    return { ...listed(row), isReleased: row.isReleased === 1, params: row.params };
  };
});

function listedIn(row: Stored<ListedSession> | undefined): Read<ListedSession | undefined> {
  return found(row && listed(row));
}

function listed(row: Stored<ListedSession>): ListedSession {
  return { ...row, keepAlive: row.keepAlive === 1, labels: sortedLabels(row.labels) };
}

export const sessionStatements = preparedOnce((tx: Tx): SessionStatements => {
  const { row, exists, write } = statements(tx);
  const read = sessionReader(tx);
  const insert = write<[object]>(`
    INSERT INTO sessions (id, project_id, status, region, context_id, extension_id, keep_alive,
      user_metadata, params, timeout_ms, created_at, updated_at, expires_at)
    VALUES (@id, @projectId, 'PENDING', @region, @contextId, @extensionId, @keepAlive,
      @userMetadata, @params, @timeoutMs, @at, @at, @expiresAt)`);
  const start = frequentQueries(tx).row<[object], Stored<ListedSession>>(`
    UPDATE sessions SET status = 'RUNNING', started_at = MAX(@startedAt, created_at),
      expires_at = @expiresAt, updated_at = @at
    WHERE id = @id AND status ${inStates(statesBefore(SESSION, 'RUNNING'))}
    RETURNING ${LISTED_COLUMNS}`);
  const end = frequentQueries(tx).row<[object], Stored<ListedSession>>(`
    UPDATE sessions SET status = @status, started_at = COALESCE(@startedAt, started_at),
      end_reason = @reason, proxy_bytes = proxy_bytes + @proxyBytes, ended_lease_id = @leaseId,
      is_given_up = @isGivenUp, ended_at = @at, updated_at = @at
    WHERE id = @id AND status ${inStates(openStates(SESSION))}
    RETURNING ${LISTED_COLUMNS}`);
  return {
    ...limitStatements(tx),
    ...referenceStatements(tx),
    insert: (session) => insert({ ...session, keepAlive: session.keepAlive ? 1 : 0 }),
    addMetadata: write(`
      INSERT INTO session_metadata (project_id, path, value, session_id)
      VALUES (@projectId, @path, @value, @id)`),
    read: (wanted) => found(read(wanted)),
    isPending: exists(`SELECT 1 FROM sessions WHERE id = ? AND status = 'PENDING'`),
    pendingUnder: row(`
      SELECT sessions.created_at AS createdAt, timeout_ms AS timeoutMs
      FROM jobs JOIN sessions ON sessions.id = jobs.id
      WHERE jobs.lease_id = ? AND sessions.status = 'PENDING'`),
    start: (wanted) => listedIn(start(wanted)),
    end: (wanted) => listedIn(end(wanted)),
    isRecorded: exists(IS_RECORDED),
  };
});

function referenceStatements(tx: Tx) {
  const { exists, rows, values } = statements(tx);
  return {
    // Few are pending at a time: index handoffs_pending.
    leasedHandoffs: rows(`
      SELECT handoffs.id AS id, instructions, jobs.lease_id AS leaseId
      FROM handoffs
        LEFT JOIN invocations ON invocations.session_id = handoffs.session_id
        JOIN jobs ON jobs.id = COALESCE(invocations.id, handoffs.session_id)
      WHERE handoffs.status = 'PENDING'
        AND jobs.runner_id = @runnerId AND jobs.instance_id = @instanceId
      ORDER BY handoffs.id`),
    isOfInvocation: exists('SELECT 1 FROM invocations WHERE session_id = ?'),
    endedBy: exists('SELECT 1 FROM sessions WHERE ended_lease_id = ? AND is_given_up = 0'),
    // Index jobs_released.
    releasedLeases: values(`
      SELECT lease_id FROM jobs
      WHERE released_at IS NOT NULL AND runner_id = @runnerId AND instance_id = @instanceId`),
  } satisfies Partial<SessionStatements>;
}

function limitStatements(tx: Tx) {
  const { returned } = statements(tx);
  return {
    // Index jobs_in_limit.
    limit: returned(`
      SELECT concurrency AS "limit", (SELECT COUNT(*) FROM jobs
        WHERE project_id = projects.id AND kind = 'session' AND released_at IS NULL) AS current,
        default_timeout AS defaultTimeout
      FROM projects WHERE id = ?`),
  } satisfies Partial<SessionStatements>;
}

function sessionList(tx: Tx): SessionOps['listSessions'] {
  const { rows } = queries(tx);
  type List = (wanted: object) => Stored<ListedSession>[];
  // Index sessions_by_project.
  const newest: List = rows(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId ORDER BY id DESC LIMIT @max`);
  // Index sessions_by_status.
  const ofStatus: List = rows(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId AND status = @status
    ORDER BY id DESC LIMIT @max`);
  // By the key of session_metadata. CROSS JOIN keeps this order of the two tables.
  const matching: List = rows(`
    SELECT ${LISTED_COLUMNS}
    FROM (SELECT session_id FROM session_metadata
      WHERE project_id = @projectId AND path = @path AND value = @value) AS found
    CROSS JOIN sessions ON sessions.id = found.session_id
    WHERE @status IS NULL OR status = @status
    ORDER BY found.session_id DESC LIMIT @max`);
  // Index sessions_by_status.
  const matchingOfStatus: List = rows(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId AND status = @status
      AND EXISTS (SELECT 1 FROM session_metadata
        WHERE project_id = @projectId AND path = @path AND value = @value
          AND session_id = sessions.id)
    ORDER BY id DESC LIMIT @max`);

  const labelled = labelledSessions(tx);

  function rowsOf({ labelKeys = [], ...wanted }: Wanted): Stored<ListedSession>[] {
    const { status, metadata, projectId, max } = wanted;
    if (labelKeys.length > 0) return labelled({ ...wanted, labelKeys });
    if (!metadata) return (status === undefined ? newest : ofStatus)({ projectId, status, max });
    const { keys, value } = metadata;
    // Nearly all sessions are COMPLETED: the metadata selects fewer of them than the status.
    const isWide = status === undefined || status === 'COMPLETED';
    const list = isWide ? matching : matchingOfStatus;
    return list({ projectId, max, status, path: JSON.stringify(keys), value });
  }
  return (wanted) => rowsOf(wanted).map(listed);
}

type Wanted = Parameters<SessionOps['listSessions']>[0];

/** Sessions with all of the labels: by the key of session_labels, which is newest first. */
function labelledSessions(tx: Tx) {
  const { rows, value } = queries(tx);
  const find = value<[string, string], string>(
    'SELECT id FROM labels WHERE project_id = ? AND name_key = ?',
  );
  const list = rows<[object], Stored<ListedSession>>(`
    SELECT ${LISTED_COLUMNS}
    FROM (SELECT session_id FROM session_labels WHERE label_id = @first
      ORDER BY session_id DESC LIMIT ${LABELLED_MAX}) AS found
    CROSS JOIN sessions ON sessions.id = found.session_id
    WHERE (@status IS NULL OR status = @status)
      AND (@path IS NULL OR EXISTS (SELECT 1 FROM session_metadata
        WHERE project_id = @projectId AND path = @path AND value = @value
          AND session_id = sessions.id))
      AND NOT EXISTS (SELECT 1 FROM json_each(@others) AS other
        WHERE NOT EXISTS (SELECT 1 FROM session_labels
          WHERE label_id = other.value AND session_id = sessions.id))
    ORDER BY found.session_id DESC LIMIT @max`);
  return ({ labelKeys, metadata, projectId, status, max }: Wanted & { labelKeys: string[] }) => {
    const ids = labelKeys.flatMap((key) => find(projectId, key) ?? []);
    if (ids.length < labelKeys.length) return [];
    const [first, ...others] = ids;
    const path = metadata && JSON.stringify(metadata.keys);
    const wanted = { projectId, status, max, path, value: metadata?.value };
    return list({ ...wanted, first, others: JSON.stringify(others) });
  };
}

/** Any session by its id: the caller has proved that it may. */
function sessionLocation(tx: Tx): SessionLifeOps['locateSession'] {
  const located = frequentQueries(tx).row<[string], Stored<LocatedSession>>(`
    SELECT sessions.project_id AS projectId, sessions.status AS status,
      runners.address AS address, runners.id AS runnerId, jobs.released_at IS NOT NULL AS isReleased
    FROM sessions
    LEFT JOIN invocations ON invocations.session_id = sessions.id
    LEFT JOIN jobs ON jobs.id = COALESCE(invocations.id, sessions.id)
    LEFT JOIN runners ON runners.id = jobs.runner_id AND runners.instance_id = jobs.instance_id
    WHERE sessions.id = ?`);
  return (id) => {
    const row = located(id);
    return row && { ...row, isReleased: row.isReleased === 1 };
  };
}

/**
 * The session of the work under a lease: a session of its own, or an invocation's. Index
 * jobs_by_lease.
 */
export const SESSION_OF_LEASE = `
  SELECT COALESCE(invocations.session_id, jobs.id) AS sessionId, jobs.project_id AS projectId
  FROM jobs LEFT JOIN invocations ON invocations.id = jobs.id
  WHERE jobs.lease_id = ? AND jobs.kind IN ('invocation', 'session')`;

/** The session that core gave up a short time ago. Index sessions_by_ended_lease. */
export const LATE_SESSION = `
  SELECT id AS sessionId, project_id AS projectId FROM sessions
  WHERE ended_lease_id = @leaseId AND is_given_up = 1 AND ended_at > @endedAfter`;
