/** Sessions in PostgreSQL. Their lifecycle: core/store/operations/sessions. */
import { must } from '../../../../proto/common/must.ts';
import type { SessionStatements } from '../../operations/sessions/sessions.ts';
import { openStates, SESSION, statesBefore } from '../../operations/states.ts';
import { made, type Read, type Steps } from '../../operations/steps.ts';
import type {
  ListedSession,
  LocatedSession,
  SessionLifeOps,
  SessionOps,
  SessionRow,
  SessionStatus,
} from '../../types/sessions.ts';
import { storable } from '../engine/sql-text.ts';
import { inStates, statements } from '../engine/statements.ts';
import { found, type InReads, mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { IS_RECORDED } from '../session-sql.ts';
import { rowsBefore } from './before.ts';
import { LISTED_COLUMNS, listed, type Stored } from './session-rows.ts';

/** Ours: sessions of one label that a list with several conditions examines, in some 50 ms. */
const LABELLED_MAX = 5_000;

/** An invocation's session has its job under the invocation's id. */
const SESSION_COLUMNS = `${LISTED_COLUMNS}, params, EXISTS (
    SELECT 1 FROM jobs WHERE released_at IS NOT NULL AND jobs.id = COALESCE(
      (SELECT invocations.id FROM invocations WHERE session_id = sessions.id), sessions.id)
  ) AS "isReleased"`;

export function sessionOps(tx: Tx): InReads<SessionOps & Pick<SessionLifeOps, 'locateSession'>> {
  return {
    getSession: sessionReader(tx),
    listSessions: sessionList(tx),
    locateSession: sessionLocation(tx),
  };
}

function sessionReader(tx: Tx): InReads<SessionOps>['getSession'] {
  const byId = statements(tx).row<[object], Stored<SessionRow>>(`
    SELECT ${SESSION_COLUMNS} FROM sessions WHERE id = @id AND project_id = @projectId`);
  return (wanted) => mapped(byId(wanted), (row) => row && listed(row));
}

export function sessionStatements(tx: Tx): SessionStatements {
  const { exists, write } = statements(tx);
  const insert = write<[object]>(`
    INSERT INTO sessions (id, project_id, status, region, context_id, extension_id, keep_alive,
      user_metadata, params, timeout_ms, created_at, updated_at, expires_at)
    VALUES (@id, @projectId, 'PENDING', @region, @contextId, @extensionId, @keepAlive,
      @userMetadata, @params, @timeoutMs, @at, @at, @expiresAt)`);
  return {
    ...limitStatements(tx),
    ...referenceStatements(tx),
    insert: (session) => insert({ ...session, keepAlive: session.keepAlive ? 1 : 0 }),
    addMetadata: write(`
      INSERT INTO session_metadata (project_id, path, value, session_id)
      VALUES (@projectId, @path, @value, @id)`),
    read: sessionReader(tx),
    isPending: exists(`SELECT 1 FROM sessions WHERE id = ? AND status = 'PENDING'`),
    ...transitionStatements(tx),
  };
}

type Transitions = Pick<SessionStatements, 'pendingUnder' | 'start' | 'end' | 'isRecorded'>;

/** Those of held jobs, which before.ts knows, write what their events show. */
function transitionStatements(tx: Tx): Transitions {
  const { row, exists, write } = statements(tx);
  const start = write<[object]>(`
    UPDATE sessions SET status = @status, started_at = @startedAt, expires_at = @expiresAt,
      updated_at = @updatedAt
    WHERE id = @id`);
  const endHeld = write<[object]>(`
    UPDATE sessions SET status = @status, started_at = @startedAt, end_reason = @endReason,
      proxy_bytes = @proxyBytes, ended_lease_id = @leaseId, is_given_up = @isGivenUp,
      ended_at = @endedAt, updated_at = @updatedAt
    WHERE id = @id`);
  // Core ends it, without a look at its row.
  const endOther = row<[object], Stored<ListedSession>>(`
    UPDATE sessions SET status = @status, started_at = COALESCE(@startedAt, started_at),
      end_reason = @reason, proxy_bytes = proxy_bytes + @proxyBytes, ended_lease_id = @leaseId,
      is_given_up = @isGivenUp, ended_at = @at, updated_at = @at
    WHERE id = @id AND status ${inStates(openStates(SESSION))}
    RETURNING ${LISTED_COLUMNS}`);
  const isRecorded = exists<[string]>(IS_RECORDED);
  const known = (id: string) => rowsBefore(tx).sessions.get(id);

  /** Gives the new row; undefined where the old one has another state. */
  function change(
    id: string,
    from: readonly SessionStatus[],
    valuesOf: (row: ListedSession) => Partial<ListedSession>,
  ) {
    const before = must(known(id), 'session of a held job');
    if (!from.includes(before.row.status)) return undefined;
    const row = { ...before.row, ...valuesOf(before.row) };
    rowsBefore(tx).sessions.set(id, { ...before, row });
    return row;
  }

  return {
    // asked for when the job is known
    pendingUnder: (leaseId) => made(pendingUnder, tx, leaseId),
    start({ id, startedAt, expiresAt, at }) {
      const row = change(id, statesBefore(SESSION, 'RUNNING'), ({ createdAt }) => {
        const times = { startedAt: Math.max(startedAt, createdAt), expiresAt, updatedAt: at };
        return { status: 'RUNNING', ...times };
      });
      if (row) start(row);
      return found(row);
    },
    end(wanted) {
      const { id, status, reason, at, leaseId, isGivenUp } = wanted;
      if (!known(id)) return mapped(endOther(wanted), (row) => row && listed(row));
      const row = change(id, openStates(SESSION), (before) => ({
        status,
        startedAt: wanted.startedAt ?? before.startedAt,
        endReason: storable(reason) as typeof reason,
        proxyBytes: before.proxyBytes + wanted.proxyBytes,
        endedAt: at,
        updatedAt: at,
      }));
      if (row) endHeld({ ...row, leaseId, isGivenUp });
      return found(row);
    },
    isRecorded(id) {
      const before = known(id);
      return before ? found(before.row.endedAt !== null && before.isWhole) : isRecorded(id);
    },
  };
}

// biome-ignore lint/correctness/useYield: its row was read with the job
function* pendingUnder(tx: Tx, leaseId: string): Steps<PendingSession | undefined> {
  const { sessions, sessionIds } = rowsBefore(tx);
  const before = sessions.get(sessionIds.get(leaseId) ?? '');
  if (before?.row.status !== 'PENDING' || before.timeoutMs === null) return undefined;
  return { createdAt: before.row.createdAt, timeoutMs: before.timeoutMs };
}

type PendingSession = { createdAt: number; timeoutMs: number };

function referenceStatements(tx: Tx) {
  const { exists, rows, values } = statements(tx);
  return {
    // Few are pending at a time: index handoffs_pending.
    leasedHandoffs: rows(`
      SELECT handoffs.id AS id, instructions, jobs.lease_id AS "leaseId"
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
        WHERE project_id = projects.id AND kind = 'session' AND released_at IS NULL) AS "current",
        default_timeout AS "defaultTimeout"
      FROM projects WHERE id = ?`),
  } satisfies Partial<SessionStatements>;
}

function sessionList(tx: Tx): InReads<SessionOps>['listSessions'] {
  const { rows } = statements(tx);
  type List = (wanted: object) => Read<Stored<ListedSession>[]>;
  // Index sessions_by_project.
  const newest: List = rows(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId ORDER BY id DESC LIMIT @max`);
  // Index sessions_by_status.
  const ofStatus: List = rows(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId AND status = @status
    ORDER BY id DESC LIMIT @max`);
  // By the key of session_metadata.
  const matching: List = rows(`
    SELECT ${LISTED_COLUMNS}
    FROM (SELECT session_id FROM session_metadata
      WHERE project_id = @projectId AND path = @path AND value = @value) AS found
    JOIN sessions ON sessions.id = found.session_id
    WHERE @status::TEXT IS NULL OR status = @status
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

  function rowsOf({ labelKeys = [], ...wanted }: Wanted): Read<Stored<ListedSession>[]> {
    const { status, metadata, projectId, max } = wanted;
    if (labelKeys.length > 0) return labelled({ ...wanted, labelKeys });
    if (!metadata) return (status === undefined ? newest : ofStatus)({ projectId, status, max });
    const { keys, value } = metadata;
    // Nearly all sessions are COMPLETED: the metadata selects fewer of them than the status.
    const isWide = status === undefined || status === 'COMPLETED';
    const list = isWide ? matching : matchingOfStatus;
    return list({ projectId, max, status, path: JSON.stringify(keys), value });
  }
  return (wanted) => mapped(rowsOf(wanted), (rows) => rows.map(listed<ListedSession>));
}

type Wanted = Parameters<SessionOps['listSessions']>[0];

/** Sessions with all of the labels: by the key of session_labels, which is newest first. */
function labelledSessions(tx: Tx) {
  const { rows, values } = statements(tx);
  const find = values<[string, string[]], string>(
    'SELECT id FROM labels WHERE project_id = ? AND name_key = ANY(?::TEXT[])',
  );
  const list = rows<[object], Stored<ListedSession>>(`
    SELECT ${LISTED_COLUMNS}
    FROM (SELECT session_id FROM session_labels WHERE label_id = @first
      ORDER BY session_id DESC LIMIT ${LABELLED_MAX}) AS found
    JOIN sessions ON sessions.id = found.session_id
    WHERE (@status::TEXT IS NULL OR status = @status)
      AND (@path::TEXT IS NULL OR EXISTS (SELECT 1 FROM session_metadata
        WHERE project_id = @projectId AND path = @path AND value = @value
          AND session_id = sessions.id))
      AND NOT EXISTS (SELECT 1 FROM unnest(@others::TEXT[]) AS other
        WHERE NOT EXISTS (SELECT 1 FROM session_labels
          WHERE label_id = other AND session_id = sessions.id))
    ORDER BY found.session_id DESC LIMIT @max`);
  type Labelled = Wanted & { labelKeys: string[] };
  return function* ({ labelKeys, metadata, projectId, status, max }: Labelled) {
    const ids = yield* find(projectId, labelKeys);
    if (ids.length < new Set(labelKeys).size) return [];
    const [first, ...others] = ids;
    const path = metadata && JSON.stringify(metadata.keys);
    const wanted = { projectId, status, max, path, value: metadata?.value };
    return yield* list({ ...wanted, first, others });
  };
}

/** Any session by its id: the caller has proved that it may. */
function sessionLocation(tx: Tx): InReads<SessionLifeOps>['locateSession'] {
  return statements(tx).row<[string], LocatedSession>(`
    SELECT sessions.project_id AS "projectId", sessions.status AS status,
      runners.address AS address, runners.id AS "runnerId",
      jobs.released_at IS NOT NULL AS "isReleased"
    FROM sessions
    LEFT JOIN invocations ON invocations.session_id = sessions.id
    LEFT JOIN jobs ON jobs.id = COALESCE(invocations.id, sessions.id)
    LEFT JOIN runners ON runners.id = jobs.runner_id AND runners.instance_id = jobs.instance_id
    WHERE sessions.id = ?`);
}
