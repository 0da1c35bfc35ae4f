/**
 * Search: an id in every table; texts among the newest objects of each kind, which a subquery with
 * a limit selects in the order of its index.
 */
import type { ConsoleOps, FoundRow, SearchedKind } from '../../types/console.ts';
import { queries } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';

/** Objects of one kind whose texts are compared. Source: console.proto. */
const NEWEST = 2_000;

const NOT_DELETED: Readonly<Partial<Record<SearchedKind, string>>> = {
  functions: 'deleted_at IS NULL',
  webhooks: `status <> 'deleted'`,
  contexts: `status = 'active'`,
};
/** The text of an object that is found by its id. */
const NAMES: Readonly<Partial<Record<SearchedKind, string>>> = {
  functions: 'name',
  webhooks: 'endpoint',
  contexts: 'name',
  downloads: 'filename',
  builds: 'entrypoint',
};
const KINDS: readonly SearchedKind[] = [
  ...(['sessions', 'invocations', 'builds', 'functions'] as const),
  ...(['webhooks', 'contexts', 'downloads', 'deliveries'] as const),
];

/** The newest rows by time, or by id where that is the order of the index. */
const newestOf = (table: string, index: string, columns = 'id, created_at'): string => {
  const order = index.endsWith('_by_time') ? 'created_at DESC, id DESC' : 'id DESC';
  const kept = NOT_DELETED[table as SearchedKind] ?? 'TRUE';
  return `(SELECT ${columns} FROM ${table} INDEXED BY ${index}
    WHERE project_id = @projectId AND ${kept} ORDER BY ${order} LIMIT ${NEWEST})`;
};

const found = (kind: SearchedKind, matched: string, text: string): string =>
  `SELECT '${kind}' AS kind, newest.id AS id, '${matched}' AS matched, ${text} AS text,
    newest.created_at AS createdAt, NULL AS webhookId`;
const ENDS = 'LIMIT @max';

/** In the order of the answer. CROSS JOIN keeps the order of the newest. */
const TEXTS: readonly string[] = [
  ...(['sessions', 'invocations', 'builds'] as const).map(
    (kind) => `${found(kind, 'id', 'NULL')} FROM ${newestOf(kind, `${kind}_by_time`)} AS newest
      WHERE instr(newest.id, @text) = 1 ${ENDS}`,
  ),
  ...(['functions', 'contexts'] as const).map(
    (kind) => `${found(kind, 'name', 'name')}
      FROM ${newestOf(kind, `${kind}_by_project`, 'id, created_at, name')} AS newest
      WHERE instr(lower(name), @text) OR instr(newest.id, @text) = 1 ${ENDS}`,
  ),
  `${found('downloads', 'name', 'filename')}
    FROM ${newestOf('downloads', 'downloads_by_time', 'id, created_at, filename')} AS newest
    WHERE instr(lower(filename), @text) OR instr(newest.id, @text) = 1 ${ENDS}`,
  // Indexes labels_by_project and the key of session_labels, which is newest first.
  `SELECT 'sessions' AS kind, sessions.id AS id, 'label' AS matched, labels.name AS text,
      sessions.created_at AS createdAt, NULL AS webhookId
    FROM labels INDEXED BY labels_by_project
    CROSS JOIN session_labels ON session_labels.label_id = labels.id
    CROSS JOIN sessions ON sessions.id = session_labels.session_id
    WHERE labels.project_id = @projectId AND labels.name_key IS NOT NULL
      AND (instr(lower(labels.name), @text) OR instr(labels.name_key, @text)) ${ENDS}`,
  `${found('sessions', 'metadata', 'user_metadata')}
    FROM ${newestOf('sessions', 'sessions_by_time')} AS newest
    CROSS JOIN sessions ON sessions.id = newest.id
    WHERE instr(lower(user_metadata), @text) ${ENDS}`,
  `${found('webhooks', 'url', 'endpoint')}
    FROM ${newestOf('webhooks', 'webhooks_by_project', 'id, created_at, endpoint')} AS newest
    WHERE instr(lower(endpoint), @text) OR instr(newest.id, @text) = 1 ${ENDS}`,
  // The primary key of recordings.
  `${found('sessions', 'url', 'url')}
    FROM ${newestOf('sessions', 'sessions_by_time')} AS newest
    CROSS JOIN recordings ON recordings.session_id = newest.id
    WHERE instr(lower(url), @text) ${ENDS}`,
];

export function consoleSearchOps(tx: Tx): Pick<ConsoleOps, 'consoleFindId' | 'consoleFindText'> {
  const { rows } = queries(tx);
  const byId = KINDS.map((kind) => rows<[object], FoundRow>(byIdOf(kind)));
  const byText = TEXTS.map((sql) => rows<[object], FoundRow>(sql));
  return {
    consoleFindId: (wanted) => byId.flatMap((find) => find(wanted)),
    consoleFindText({ step, ...wanted }) {
      const find = byText[step];
      return find === undefined ? undefined : find(wanted);
    },
  };
}

function byIdOf(kind: SearchedKind): string {
  if (kind !== 'deliveries') {
    return `SELECT '${kind}' AS kind, id, 'id' AS matched, ${NAMES[kind] ?? 'NULL'} AS text,
        created_at AS createdAt, NULL AS webhookId
      FROM ${kind} WHERE id = @id AND project_id = @projectId AND ${NOT_DELETED[kind] ?? 'TRUE'}`;
  }
  return `SELECT 'deliveries' AS kind, events.id AS id, 'id' AS matched, type AS text,
      events.created_at AS createdAt, webhook_id AS webhookId
    FROM events CROSS JOIN deliveries ON deliveries.event_id = events.id
    CROSS JOIN webhooks ON webhooks.id = webhook_id AND status <> 'deleted'
    WHERE events.id = @id AND events.project_id = @projectId LIMIT @max`;
}
