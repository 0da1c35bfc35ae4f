/** Contexts and their key pairs in PostgreSQL. Their rules: core/store/operations/contexts.ts. */
import type { ContextStatements } from '../../operations/contexts.ts';
import type { WorkItemStatements } from '../../operations/work-items.ts';
import type {
  ContextContent,
  ContextContentOps,
  ContextOps,
  ContextRow,
} from '../../types/contexts.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

const COLUMNS = `id, project_id AS "projectId", name, public_key AS "publicKey",
  created_at AS "createdAt", updated_at AS "updatedAt"`;
const CONTENT = `contexts.id AS id, contexts.blob_id AS "blobId", contexts.public_key AS
  "publicKey",
  contexts.private_key AS "privateKey", contexts.key_pair_id AS "keyPairId"`;
const IS_PERSISTED = `COALESCE(
  (json_of(sessions.params) #>> '{browserSettings,context,persist}')::BOOLEAN, FALSE)`;
const ACTIVE = `id = @id AND project_id = @projectId AND status = 'active'`;

/** After every UUID, in the order of text. */
const LAST_ID = '~';

export function contextOps(
  tx: Tx,
): InReads<
  Omit<ContextOps, 'createContext' | 'deleteContext'> & Pick<ContextContentOps, 'getContextContent'>
> {
  const { row, rows, value, number, write, done } = statements(tx);
  const countKeyPairs = number<[]>('SELECT COUNT(*) FROM key_pairs');
  const addPair = write(`
    INSERT INTO key_pairs (id, public_key, private_key, created_at)
    VALUES (@id, @publicKey, @privateKey, @at)`);
  // Index contexts_by_project; ids are UUID v7, so newest id = newest context.
  const page = rows<[string, string, number], ContextRow>(`
    SELECT ${COLUMNS} FROM contexts
    WHERE project_id = ? AND id < ? AND status = 'active'
    ORDER BY id DESC LIMIT ?`);
  return {
    masterKeyCheck: value('SELECT sealed FROM master_key_check'),
    setMasterKeyCheck: done(`
      INSERT INTO master_key_check (id, sealed) VALUES (1, ?) ON CONFLICT (id) DO NOTHING`),
    countKeyPairs,
    addKeyPair(pair) {
      addPair(pair);
      return countKeyPairs();
    },
    getContext: row(`SELECT ${COLUMNS} FROM contexts WHERE ${ACTIVE}`),
    listContexts: ({ projectId, before = LAST_ID, limit }) => page(projectId, before, limit),
    getContextContent: row(`SELECT ${CONTENT} FROM contexts WHERE ${ACTIVE}`),
  };
}

export function contextStatements(tx: Tx): ContextStatements {
  const { row, exists, changed, returned, write } = statements(tx);
  return {
    ...contentStatements(tx),
    // Index contexts_by_name.
    isNameTaken: exists(`
      SELECT 1 FROM contexts WHERE project_id = ? AND name_key = ? AND status = 'active'`),
    takeKeyPair: row(`
      DELETE FROM key_pairs WHERE id = (
        SELECT id FROM key_pairs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
      RETURNING id AS "keyPairId", public_key AS "publicKey", private_key AS "privateKey"`),
    insert: returned(`
      INSERT INTO contexts (id, project_id, name, name_key, status, key_pair_id, public_key,
        private_key, created_at, updated_at)
      VALUES (@id, @projectId, @name, @nameKey, 'active', @keyPairId, @publicKey, @privateKey, @at,
        @at)
      RETURNING ${COLUMNS}`),
    remove: changed(`
      UPDATE contexts
      SET status = 'deleted', name_key = NULL, private_key = NULL, deleted_at = @at,
        updated_at = @at, blob_id = NULL, version = version + 1
      WHERE ${ACTIVE}`),
    setContent: write(`
      UPDATE contexts SET blob_id = @blobId, saved_at = @at, saved_by = @savedBy, updated_at = @at,
        save_seq = save_seq + 1, version = version + 1
      WHERE id = @id`),
  };
}

function contentStatements(tx: Tx) {
  const { row, exists, changed } = statements(tx);
  const drop = changed<[object]>(`
    DELETE FROM blobs WHERE id = @id AND kind = 'CONTEXT'
      AND NOT EXISTS (SELECT 1 FROM contexts WHERE blob_id = @id)
      AND NOT EXISTS (SELECT 1 FROM sessions
        WHERE context_blob_id = @id AND status IN ('PENDING', 'RUNNING'))`);
  return {
    // Locked: the last save wins, and no session starts from the content that it replaces.
    content: row(`
      SELECT blob_id AS "blobId", save_seq AS "saveSeq" FROM contexts WHERE ${ACTIVE}
      FOR NO KEY UPDATE`),
    // Index jobs_by_lease.
    workOf: row(`
      SELECT sessions.id AS "sessionId", sessions.context_id AS "contextId",
        jobs.project_id AS "projectId", ${IS_PERSISTED}::INT AS persist,
        COALESCE(sessions.context_seq, 0) AS seq
      FROM jobs
      LEFT JOIN invocations ON invocations.id = jobs.id
      JOIN sessions ON sessions.id = COALESCE(invocations.session_id, jobs.id)
      WHERE jobs.lease_id = ?`),
    // Index sessions_by_ended_lease.
    lateWorkOf: row(`
      SELECT id AS "sessionId", context_id AS "contextId", project_id AS "projectId",
        ${IS_PERSISTED}::INT AS persist, COALESCE(context_seq, 0) AS seq
      FROM sessions
      WHERE ended_lease_id = @leaseId AND is_given_up = 1 AND ended_at > @endedAfter`),
    // Index contexts_by_blob.
    isFree: exists(`
      SELECT 1 FROM blobs WHERE id = @blobId AND project_id = @projectId AND kind = 'CONTEXT'
        AND NOT EXISTS (SELECT 1 FROM contexts WHERE blob_id = @blobId)`),
    dropBlob: (id) => drop({ id }),
  } satisfies Partial<ContextStatements>;
}

/** What sessions start from. */
export function contextStarts(tx: Tx) {
  const start = statements(tx).row<[object], ContextContent & { persist: boolean }>(`
    WITH start AS (
      SELECT ${CONTENT}, contexts.save_seq AS seq, ${IS_PERSISTED} AS persist
      FROM sessions
      JOIN contexts ON contexts.id = sessions.context_id AND contexts.status = 'active'
        AND contexts.project_id = sessions.project_id
      WHERE sessions.id = @sessionId FOR SHARE OF contexts),
    remembered AS (
      UPDATE sessions SET context_blob_id = start."blobId", context_seq = start.seq
      FROM start WHERE sessions.id = @sessionId)
    SELECT id, "blobId", "publicKey", "privateKey", "keyPairId", persist FROM start`);
  return {
    startContext: (sessionId) => start({ sessionId }),
  } satisfies Partial<WorkItemStatements>;
}
