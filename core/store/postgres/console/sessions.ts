/** Sessions as the console lists them. */
import type { Steps } from '../../operations/steps.ts';
import type {
  ConsoleOps,
  ConsoleSessionRow,
  ConsoleSessionsWanted,
  Listed,
} from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { LABELS_OF_SESSION, sortedLabels } from '../work/labels.ts';
import { ENTRIES_MAX, ROWS_MAX, type Walk, walks } from './walk.ts';

/** In text order. */
const AFTER_EVERY_ID = '~';

type Stored = Omit<ConsoleSessionRow, 'labels'> & {
  /** JSON. */
  labels: string;
};

const COLUMNS = `sessions.id AS id, sessions.status AS status, sessions.region AS region,
  sessions.context_id AS "contextId", keep_alive = 1 AS "keepAlive", proxy_bytes AS "proxyBytes",
  user_metadata AS "userMetadata", sessions.created_at AS "createdAt",
  sessions.started_at AS "startedAt", sessions.ended_at AS "endedAt",
  sessions.expires_at AS "expiresAt", end_reason AS "endReason",
  CASE WHEN functions.id IS NULL THEN NULL ELSE invocations.id END AS "invocationId", functions.id
  AS "functionId",
  functions.name AS "functionName", EXISTS (
    SELECT 1 FROM jobs WHERE released_at IS NOT NULL
      AND jobs.id = COALESCE(invocations.id, sessions.id)) AS "isReleased", ${LABELS_OF_SESSION}`;

/**
 * The unique index of invocations (session_id). Those of deleted functions, and of the service's
 * own, are not shown.
 */
const JOINS = `
  LEFT JOIN invocations ON invocations.session_id = sessions.id
  LEFT JOIN functions ON functions.id = invocations.function_id AND deleted_at IS NULL
    AND functions.project_id = invocations.project_id`;

/** Index labels_by_name. */
const LABEL_ID = `(SELECT labels.id FROM labels
  WHERE labels.project_id = @projectId AND labels.name_key = @labelKey)`;

const OF_INDEX = `
  (@status::TEXT IS NULL OR sessions.status = @status)
  AND (@contextId::TEXT IS NULL OR sessions.context_id = @contextId)`;
const OF_ROW = `${OF_INDEX}
  AND (@region::TEXT IS NULL OR sessions.region = @region)
  AND (@functionId::TEXT IS NULL OR invocations.function_id = @functionId)
  AND (@text::TEXT IS NULL OR strpos(sessions.id, @text) > 0 OR strpos(lower(user_metadata), @text)
  > 0
    OR strpos(lower(functions.name), @text) > 0)
  AND (@labelKey::TEXT IS NULL OR EXISTS (SELECT 1 FROM session_labels
    WHERE label_id = ${LABEL_ID} AND session_id = sessions.id))`;

const BY_TIME = {
  columns: COLUMNS,
  joins: JOINS,
  table: 'sessions',
  where: 'sessions.project_id = @projectId',
  at: 'sessions.created_at',
  id: 'sessions.id',
} satisfies Walk;
const FAILED = {
  ...BY_TIME,
  table: 'sessions',
  where: `${BY_TIME.where} AND sessions.status IN ('ERROR', 'TIMED_OUT')`,
} satisfies Walk;

export function consoleSessionOps(
  tx: Tx,
): InReads<Pick<ConsoleOps, 'consoleSessions' | 'consoleSession' | 'consoleRunning'>> {
  const byId = plannedAnew(tx).row<[object], Stored>(`
    SELECT ${COLUMNS} FROM sessions ${JOINS}
    WHERE sessions.id = @id AND sessions.project_id = @projectId`);
  // The primary keys of sessions and jobs, and the unique index of invocations.
  const runs = plannedAnew(tx).values<[object], string>(`
    SELECT sessions.id FROM sessions LEFT JOIN invocations ON invocations.session_id = sessions.id
    JOIN jobs ON jobs.id = COALESCE(invocations.id, sessions.id) AND jobs.released_at IS NULL
    WHERE sessions.id = ANY(@ids::TEXT[]) AND sessions.project_id = @projectId
      AND sessions.status = 'RUNNING'`);
  const pages = pagesBy(tx);
  return {
    *consoleSessions(wanted) {
      const { rows, next } = yield* pages(wanted);
      return { rows: rows.map(shown), next };
    },
    *consoleSession(wanted) {
      const row = yield* byId(wanted);
      return row && shown(row);
    },
    *consoleRunning(wanted) {
      const running = new Set(yield* runs(wanted));
      return wanted.ids.filter((id) => running.has(id));
    },
  };
}

function shown({ labels, ...row }: Stored): ConsoleSessionRow {
  return { ...row, labels: sortedLabels(labels) };
}

function pagesBy(tx: Tx): (wanted: ConsoleSessionsWanted) => Steps<Listed<Stored>> {
  const all = walks<ConsoleSessionsWanted, Stored>(tx, { ...BY_TIME, filter: OF_INDEX });
  const failed = walks<ConsoleSessionsWanted, Stored>(tx, { ...FAILED, filter: OF_INDEX });
  const matching = walks<ConsoleSessionsWanted, Stored>(tx, { ...BY_TIME, filter: OF_ROW });
  const failedMatching = walks<ConsoleSessionsWanted, Stored>(tx, { ...FAILED, filter: OF_ROW });
  const ofMetadata = pagesOf(tx, METADATA);
  const ofLabel = pagesOf(tx, LABEL);
  return (wanted) => {
    if (wanted.metadata) return ofMetadata(wanted);
    if (wanted.labelKey !== undefined) return ofLabel(wanted);
    const { status, text, functionId, region } = wanted;
    const isFailed = status === 'ERROR' || status === 'TIMED_OUT';
    if (text === undefined && functionId === undefined && region === undefined) {
      return (isFailed ? failed : all)(wanted, ENTRIES_MAX);
    }
    return (isFailed ? failedMatching : matching)(wanted, ROWS_MAX);
  };
}

/** Tables whose keys end with the id of a session. */
type Keyed = { table: string; where: string };
const METADATA: Keyed = {
  table: 'session_metadata',
  where: 'found.project_id = @projectId AND found.path = @path AND found.value = @value',
};
const LABEL: Keyed = { table: 'session_labels', where: `found.label_id = ${LABEL_ID}` };

/** By the key of a table, and in its order; */
function pagesOf(
  tx: Tx,
  { table, where }: Keyed,
): (wanted: ConsoleSessionsWanted) => Steps<Listed<Stored>> {
  const { rows, row } = plannedAnew(tx);
  const range = `${where} AND found.session_id < @beforeId`;
  const lowest = row<[object], { id: string }>(`
    SELECT session_id AS id FROM ${table} AS found WHERE ${range}
    ORDER BY session_id DESC LIMIT 1 OFFSET @scanMax - 1`);
  const page = rows<[object], Stored>(`
    SELECT ${COLUMNS}
    FROM ${table} AS found
    JOIN sessions ON sessions.id = found.session_id ${JOINS}
    WHERE ${range} AND found.session_id >= @lowId AND ${OF_ROW}
      AND sessions.created_at >= @from AND sessions.created_at < @to
    ORDER BY found.session_id DESC LIMIT @limit + 1`);
  return function* ({ metadata = { keys: [], value: '' }, before, ...wanted }) {
    const { keys, value } = metadata;
    const bounds = { beforeId: before?.id ?? AFTER_EVERY_ID, scanMax: ROWS_MAX };
    const filter = { ...wanted, ...bounds, path: JSON.stringify(keys), value };
    const low = yield* lowest(filter);
    const found = yield* page({ ...filter, lowId: low?.id ?? '' });
    const kept = found.slice(0, wanted.limit);
    const last = found.length > wanted.limit ? kept.at(-1)?.id : low?.id;
    return { rows: kept, next: last === undefined ? undefined : { at: wanted.to, id: last } };
  };
}
