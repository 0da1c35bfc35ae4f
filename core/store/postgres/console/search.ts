/**
 * Search: an id in every table; texts among the newest objects of each kind, which a subquery with
 * a limit selects in the order of its index.
 */
import type { ConsoleOps, FoundRow, SearchedKind } from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
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
const newestOf = (table: string, by: 'time' | 'id', columns = 'id, created_at'): string => {
  const order = by === 'time' ? 'created_at DESC, id DESC' : 'id DESC';
  const kept = NOT_DELETED[table as SearchedKind] ?? 'TRUE';
  return `(SELECT ${columns} FROM ${table}
    WHERE project_id = @projectId AND ${kept} ORDER BY ${order} LIMIT ${NEWEST})`;
};

const found = (kind: SearchedKind, matched: string, text: string): string =>
  `SELECT '${kind}' AS kind, newest.id AS id, '${matched}' AS matched, ${text} AS text,
    newest.created_at AS "createdAt", NULL AS "webhookId"`;
const ENDS = 'LIMIT @max';

/** In the order of the answer. */
const TEXTS: readonly string[] = [
  ...(['sessions', 'invocations', 'builds'] as const).map(
    (kind) => `${found(kind, 'id', 'NULL')} FROM ${newestOf(kind, 'time')} AS newest
      WHERE strpos(newest.id, @text) = 1 ${ENDS}`,
  ),
  ...(['functions', 'contexts'] as const).map(
    (kind) => `${found(kind, 'name', 'name')}
      FROM ${newestOf(kind, 'id', 'id, created_at, name')} AS newest
      WHERE strpos(lower(name), @text) > 0 OR strpos(newest.id, @text) = 1 ${ENDS}`,
  ),
  `${found('downloads', 'name', 'filename')}
    FROM ${newestOf('downloads', 'time', 'id, created_at, filename')} AS newest
    WHERE strpos(lower(filename), @text) > 0 OR strpos(newest.id, @text) = 1 ${ENDS}`,
  // Index labels_by_project and the key of session_labels: the newest of each label.
  `SELECT 'sessions' AS kind, sessions.id AS id, 'label' AS matched, labels.name AS text,
      sessions.created_at AS "createdAt", NULL AS "webhookId"
    FROM labels
    CROSS JOIN LATERAL (SELECT session_id FROM session_labels WHERE label_id = labels.id
      ORDER BY session_id DESC LIMIT @max) AS newest
    JOIN sessions ON sessions.id = newest.session_id
    WHERE labels.project_id = @projectId AND labels.name_key IS NOT NULL
      AND (strpos(lower(labels.name), @text) > 0 OR strpos(labels.name_key, @text) > 0)
    ORDER BY labels.id, newest.session_id DESC ${ENDS}`,
  `${found('sessions', 'metadata', 'user_metadata')}
    FROM ${newestOf('sessions', 'time')} AS newest
    JOIN sessions ON sessions.id = newest.id
    WHERE strpos(lower(user_metadata), @text) > 0 ${ENDS}`,
  `${found('webhooks', 'url', 'endpoint')}
    FROM ${newestOf('webhooks', 'id', 'id, created_at, endpoint')} AS newest
    WHERE strpos(lower(endpoint), @text) > 0 OR strpos(newest.id, @text) = 1 ${ENDS}`,
  // The primary key of recordings.
  `${found('sessions', 'url', 'url')}
    FROM ${newestOf('sessions', 'time')} AS newest
    JOIN recordings ON recordings.session_id = newest.id
    WHERE strpos(lower(url), @text) > 0 ${ENDS}`,
];

export function consoleSearchOps(
  tx: Tx,
): InReads<Pick<ConsoleOps, 'consoleFindId' | 'consoleFindText'>> {
  const { rows } = plannedAnew(tx);
  const byId = KINDS.map((kind) => rows<[object], FoundRow>(byIdOf(kind)));
  const byText = TEXTS.map((sql) => rows<[object], FoundRow>(sql));
  return {
    *consoleFindId(wanted) {
      const all: FoundRow[] = [];
      for (const read of byId.map((find) => find(wanted))) all.push(...(yield* read));
      return all;
    },
    *consoleFindText({ step, ...wanted }) {
      const find = byText[step];
      return find === undefined ? undefined : yield* find(wanted);
    },
  };
}

function byIdOf(kind: SearchedKind): string {
  if (kind !== 'deliveries') {
    return `SELECT '${kind}' AS kind, id, 'id' AS matched, ${NAMES[kind] ?? 'NULL'} AS text,
        created_at AS "createdAt", NULL AS "webhookId"
      FROM ${kind} WHERE id = @id AND project_id = @projectId AND ${NOT_DELETED[kind] ?? 'TRUE'}`;
  }
  return `SELECT 'deliveries' AS kind, events.id AS id, 'id' AS matched, type AS text,
      events.created_at AS "createdAt", webhook_id AS "webhookId"
    FROM events JOIN deliveries ON deliveries.event_id = events.id
    JOIN webhooks ON webhooks.id = webhook_id AND status <> 'deleted'
    WHERE events.id = @id AND events.project_id = @projectId LIMIT @max`;
}
