/**
 * Contexts and their key pairs in SQLite. A context is active -> deleted; a deleted one stays as a
 * tombstone without its name and its private key. A key pair is taken from the pool and the context
 * is created in one operation: a pair belongs to one context at most.
 */
import { must } from '../../../proto/common/must.ts';
import type { WorkItemStatements } from '../operations/work-items.ts';
import type {
  ContextContent,
  ContextContentOps,
  ContextOps,
  ContextRow,
  NewContext,
  NewKeyPair,
  Replaced,
} from '../types/contexts.ts';
import { found } from './engine/steps.ts';
import { preparedOnce, type Tx } from './engine/transaction.ts';
import { storedSums } from './storage.ts';

const COLUMNS = `id, project_id AS projectId, name, public_key AS publicKey,
  created_at AS createdAt, updated_at AS updatedAt`;

/** After every UUID, in the order of text. */
const LAST_ID = '~';

type KeyPairRow = { id: string; publicKey: string; privateKey: Uint8Array };

export function contextOps(tx: Tx): ContextOps {
  const { db } = tx;
  const countPairs = db.prepare<[], number>('SELECT COUNT(*) FROM key_pairs').pluck();
  const addPair = db.prepare<[NewKeyPair]>(`
    INSERT INTO key_pairs (id, public_key, private_key, created_at)
    VALUES (@id, @publicKey, @privateKey, @at)`);
  const takePair = db.prepare<[], KeyPairRow>(`
    DELETE FROM key_pairs WHERE id = (SELECT MIN(id) FROM key_pairs)
    RETURNING id, public_key AS publicKey, private_key AS privateKey`);

  // Index contexts_by_name.
  const byName = db.prepare<[string, string]>(`
    SELECT 1 FROM contexts WHERE project_id = ? AND name_key = ? AND status = 'active'`);
  const insert = db.prepare<[NewContext & { pair: string } & Omit<KeyPairRow, 'id'>], ContextRow>(`
    INSERT INTO contexts (id, project_id, name, name_key, status, key_pair_id, public_key,
      private_key, created_at, updated_at)
    VALUES (@id, @projectId, @name, @nameKey, 'active', @pair, @publicKey, @privateKey, @at, @at)
    RETURNING ${COLUMNS}`);
  const byId = db.prepare<[{ id: string; projectId: string }], ContextRow>(`
    SELECT ${COLUMNS} FROM contexts
    WHERE id = @id AND project_id = @projectId AND status = 'active'`);
  // Index contexts_by_project; ids are UUID v7, so newest id = newest context.
  const page = db.prepare<[string, string, number], ContextRow>(`
    SELECT ${COLUMNS} FROM contexts
    WHERE project_id = ? AND id < ? AND status = 'active'
    ORDER BY id DESC LIMIT ?`);
  const forget = forgetting(tx);
  const { countOf } = storedSums(tx);
  const heldBlob = db
    .prepare<[object], string | null>(`
      SELECT blob_id FROM contexts
      WHERE id = @id AND project_id = @projectId AND status = 'active'`)
    .pluck();
  const remove = db.prepare<[{ id: string; projectId: string; at: number }]>(`
    UPDATE contexts
    SET status = 'deleted', name_key = NULL, private_key = NULL, deleted_at = @at, updated_at = @at,
      blob_id = NULL, version = version + 1
    WHERE id = @id AND project_id = @projectId AND status = 'active'`);

  return {
    ...masterKeyOps(tx),

    countKeyPairs: () => countPairs.get() ?? 0,

    addKeyPair(pair) {
      addPair.run(pair);
      return countPairs.get() ?? 0;
    },

    createContext({ max = Number.POSITIVE_INFINITY, ...context }) {
      const { projectId, nameKey } = context;
      if (nameKey !== null && byName.get(projectId, nameKey)) return { outcome: 'name-taken' };
      if (countOf(projectId, 'ACTIVE_CONTEXT') >= max) return { outcome: 'full' };
      const pair = takePair.get();
      if (!pair) return { outcome: 'no-key' };
      const row = must(insert.get({ ...context, ...pair, id: context.id, pair: pair.id }), 'row');
      return { outcome: 'created', context: row };
    },

    getContext: (wanted) => byId.get(wanted),

    listContexts: ({ projectId, before, limit }) => page.all(projectId, before ?? LAST_ID, limit),

    deleteContext(wanted) {
      const blobId = heldBlob.get(wanted) ?? null;
      if (remove.run(wanted).changes === 0) return undefined;
      return { dropped: blobId === null ? [] : forget([blobId]) };
    },
  };
}

function masterKeyOps({ db }: Tx): Pick<ContextOps, 'masterKeyCheck' | 'setMasterKeyCheck'> {
  const check = db.prepare<[], Uint8Array>('SELECT sealed FROM master_key_check').pluck();
  const setCheck = db.prepare<[Uint8Array]>(`
    INSERT INTO master_key_check (id, sealed) VALUES (1, ?) ON CONFLICT (id) DO NOTHING`);
  return {
    masterKeyCheck: () => check.get(),
    setMasterKeyCheck: (sealed) => void setCheck.run(sealed),
  };
}

const CONTENT = `contexts.id AS id, contexts.blob_id AS blobId, contexts.public_key AS publicKey,
  contexts.private_key AS privateKey, contexts.key_pair_id AS keyPairId`;

type Work = {
  contextId: string | null;
  projectId: string;
  persist: number;
  /** save_seq at the lease. */
  seq: number;
};
type Held = { blobId: string | null; saveSeq: number };
type Wanted = { id: string; projectId: string; blobId: string; seq: number; at: number };

export function contextContentOps(tx: Tx): ContextContentOps {
  const { db } = tx;
  const content = db.prepare<[{ id: string; projectId: string }], ContextContent>(`
    SELECT ${CONTENT} FROM contexts
    WHERE id = @id AND project_id = @projectId AND status = 'active'`);
  const work = db.prepare<[string], Work>(`
    SELECT sessions.context_id AS contextId, jobs.project_id AS projectId,
      COALESCE(sessions.params ->> '$.browserSettings.context.persist', 0) AS persist,
      COALESCE(sessions.context_seq, 0) AS seq
    FROM jobs
    LEFT JOIN invocations ON invocations.id = jobs.id
    JOIN sessions ON sessions.id = COALESCE(invocations.session_id, jobs.id)
    WHERE jobs.lease_id = ?`); // index jobs_by_lease
  const saveSeq = db
    .prepare<[string], number>('SELECT save_seq FROM contexts WHERE id = ?')
    .pluck();
  const replace = replacement(tx);

  return {
    getContextContent: (wanted) => content.get(wanted),

    saveContext({ leaseId, blobId, at }) {
      const held = work.get(leaseId);
      if (!held) return { outcome: 'lost' };
      const { contextId: id, projectId, seq } = held;
      if (id === null || held.persist !== 1) return { outcome: 'refused' };
      return replace({ id, projectId, blobId, seq, at });
    },

    replaceContext(wanted) {
      return replace({ ...wanted, seq: saveSeq.get(wanted.id) ?? 0 });
    },

    dropContextBlobs: forgetting(tx),
  };
}

/** `seq`: the save_seq that the one who replaces has seen. */
function replacement(tx: Tx): (wanted: Wanted) => Replaced | { outcome: 'refused' } {
  const { db, crashPoint } = tx;
  const forget = forgetting(tx);
  const byId = db.prepare<[object], Held>(`
    SELECT blob_id AS blobId, save_seq AS saveSeq FROM contexts
    WHERE id = @id AND project_id = @projectId AND status = 'active'`);
  const isFree = db.prepare<[object]>(`
    SELECT 1 FROM blobs WHERE id = @blobId AND project_id = @projectId AND kind = 'CONTEXT'
      AND NOT EXISTS (SELECT 1 FROM contexts WHERE blob_id = @blobId)`); // index contexts_by_blob
  const update = db.prepare<[object]>(`
    UPDATE contexts SET blob_id = @blobId, saved_at = @at, updated_at = @at,
      save_seq = save_seq + 1, version = version + 1
    WHERE id = @id`);

  return (wanted) => {
    const held = byId.get(wanted);
    if (held?.blobId === wanted.blobId) {
      // A repeat, whose answer was lost: one save came after what it saw, its own.
      return { outcome: 'saved', replaced: held.saveSeq - 1 > wanted.seq, dropped: [] };
    }
    if (!isFree.get(wanted)) return { outcome: 'refused' };
    if (!held) return { outcome: 'deleted', dropped: forget([wanted.blobId]) };
    update.run(wanted);
    crashPoint('save-context');
    const dropped = held.blobId === null ? [] : forget([held.blobId]);
    return { outcome: 'saved', replaced: held.saveSeq > wanted.seq, dropped };
  };
}

/** Forgets blobs that nobody holds or runs from; gives their ids. */
export const forgetting = preparedOnce(({ db }: Tx): ((ids: string[]) => string[]) => {
  const forget = db.prepare<[{ id: string }]>(`
    DELETE FROM blobs WHERE id = @id AND kind = 'CONTEXT'
      AND NOT EXISTS (SELECT 1 FROM contexts WHERE blob_id = @id)
      AND NOT EXISTS (SELECT 1 FROM sessions
        WHERE context_blob_id = @id AND status IN ('PENDING', 'RUNNING'))`);
  return (ids) => ids.filter((id) => forget.run({ id }).changes > 0);
});

/** What sessions start from. */
export function contextStarts({
  db,
}: Tx): Pick<WorkItemStatements, 'contextOf' | 'rememberContext'> {
  const bySession = db.prepare<[string], ContextContent & { persist: number; saveSeq: number }>(`
    SELECT ${CONTENT}, contexts.save_seq AS saveSeq,
      COALESCE(sessions.params ->> '$.browserSettings.context.persist', 0) AS persist
    FROM sessions
    JOIN contexts ON contexts.id = sessions.context_id AND contexts.status = 'active'
      AND contexts.project_id = sessions.project_id
    WHERE sessions.id = ?`);
  const remember = db.prepare<[object]>(`
    UPDATE sessions SET context_blob_id = @blobId, context_seq = @saveSeq WHERE id = @sessionId`);
  return {
    contextOf(sessionId) {
      const row = bySession.get(sessionId);
      return found(row && { ...row, persist: row.persist === 1 });
    },
    rememberContext: (start) => void remember.run(start),
  };
}
