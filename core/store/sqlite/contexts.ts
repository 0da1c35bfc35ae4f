/**
 * Contexts and their key pairs in SQLite. A context is active -> deleted; a deleted one stays as a
 * tombstone without name key and private key. Taking a pair and making the context are one
 * operation: a pair belongs to one context at most.
 */
import { must } from '../../../proto/common/must.ts';
import type { ContextOps, ContextRow, NewContext, NewKeyPair } from '../types/contexts.ts';
import { forgetting } from './context-content.ts';
import type { Tx } from './engine/transaction.ts';
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
