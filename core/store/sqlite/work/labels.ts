/**
 * Labels in SQLite, and which sessions have them. Their rules: core/store/operations/sessions. A
 * deleted label has no key; its rows are removed in batches.
 */
import type { LabelStatements } from '../../operations/sessions/sessions.ts';
import type { LabelOps, LabelRow } from '../../types/sessions.ts';
import { frequentQueries, queries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

const COLUMNS = `id, project_id AS projectId, name, created_at AS createdAt,
  updated_at AS updatedAt`;
/** After every UUID, in the order of text. */
const LAST_ID = '~';

/** JSON array of the names of a session's labels. Index session_labels_by_session. */
export const LABELS_OF_SESSION = `(SELECT json_group_array(labels.name) FROM session_labels
  CROSS JOIN labels ON labels.id = session_labels.label_id AND labels.name_key IS NOT NULL
  WHERE session_labels.session_id = sessions.id) AS labels`;

export function sortedLabels(json: string): string[] {
  return (JSON.parse(json) as string[]).sort();
}

export function labelOps(tx: Tx): Pick<LabelOps, 'listLabels'> {
  // Index labels_by_project; ids are UUID v7, so newest id = newest label.
  const page = queries(tx).rows<[string, string, number], LabelRow>(`
    SELECT ${COLUMNS} FROM labels
    WHERE project_id = ? AND id < ? AND name_key IS NOT NULL ORDER BY id DESC LIMIT ?`);
  return { listLabels: ({ projectId, before = LAST_ID, limit }) => page(projectId, before, limit) };
}

export function labelStatements(tx: Tx): LabelStatements {
  const { value, number, exists, returned, changed, write } = statements(tx);
  const names = frequentQueries(tx).values<[string], string>(`
    SELECT labels.name FROM session_labels
    CROSS JOIN labels ON labels.id = session_labels.label_id AND labels.name_key IS NOT NULL
    WHERE session_labels.session_id = ?`);
  const own = 'id = @id AND project_id = @projectId AND name_key IS NOT NULL';
  return {
    // Index labels_by_name.
    find: value('SELECT id FROM labels WHERE project_id = ? AND name_key = ?'),
    has: exists(`SELECT 1 FROM labels WHERE ${own}`),
    // Index labels_by_project.
    countOf: number('SELECT COUNT(*) FROM labels WHERE project_id = ? AND name_key IS NOT NULL'),
    insert: returned(`
      INSERT INTO labels (id, project_id, name, name_key, created_at, updated_at)
      VALUES (@id, @projectId, @name, @nameKey, @at, @at) RETURNING ${COLUMNS}`),
    rename: returned(`
      UPDATE labels SET name = @name, name_key = @nameKey, updated_at = @at WHERE ${own}
      RETURNING ${COLUMNS}`),
    remove: changed(`UPDATE labels SET name_key = NULL, updated_at = @at WHERE ${own}`),
    purge: purgeOf(tx),
    namesOf: (sessionId) => found(names(sessionId).sort()),
    attach: write(`
      INSERT INTO session_labels (label_id, session_id, project_id)
      VALUES (@labelId, @sessionId, @projectId) ON CONFLICT DO NOTHING`),
    detachAll: write('DELETE FROM session_labels WHERE session_id = ?'),
    touch: write('UPDATE sessions SET updated_at = @at WHERE id = @id'),
  };
}

function purgeOf(tx: Tx): LabelStatements['purge'] {
  const { changes } = queries(tx);
  // Index labels_deleted, and the key of session_labels.
  const detach = changes<[number]>(`
    DELETE FROM session_labels WHERE (label_id, session_id) IN (
      SELECT label_id, session_id FROM labels
      CROSS JOIN session_labels ON label_id = labels.id
      WHERE labels.name_key IS NULL LIMIT ?)`);
  const remove = changes<[number]>(`
    DELETE FROM labels WHERE id IN (
      SELECT id FROM labels WHERE name_key IS NULL
        AND NOT EXISTS (SELECT 1 FROM session_labels WHERE label_id = labels.id) LIMIT ?)`);
  return (max) => {
    const detached = detach(max);
    return found(detached + (detached < max ? remove(max - detached) : 0));
  };
}
