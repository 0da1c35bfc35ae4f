/**
 * Extensions in SQLite. One that is deleted goes at once with its blob's row, or stays as a
 * tombstone while an open session is to load it.
 *   active -> deleted (open sessions only) -> gone;  active -> gone
 */
import { must } from '../../../proto/common/must.ts';
import type { ExtensionOps, ExtensionRow, LeasedExtension } from '../types/extensions.ts';
import type { Tx } from './engine/transaction.ts';

const COLUMNS = `id, project_id AS projectId, file_name AS fileName, created_at AS createdAt,
  updated_at AS updatedAt`;
/** What a session names; the reference takes it in two places. */
const NAMED = `lower(COALESCE(sessions.extension_id,
  sessions.params ->> '$.extensionId', sessions.params ->> '$.browserSettings.extensionId'))`;
/** Index sessions_open_by_project. */
const IS_LOADED = `EXISTS (
  SELECT 1 FROM sessions
  WHERE project_id = extensions.project_id AND status IN ('PENDING', 'RUNNING')
    AND ${NAMED} = extensions.id)`;

export function extensionOps({ db }: Tx): ExtensionOps {
  const isFree = db.prepare<[object]>(`
    SELECT 1 FROM blobs
    WHERE id = @blobId AND project_id = @projectId AND kind = 'EXTENSION'
      AND NOT EXISTS (SELECT 1 FROM extensions WHERE blob_id = blobs.id)`);
  const insert = db.prepare<[object], ExtensionRow>(`
    INSERT INTO extensions (id, project_id, blob_id, file_name, created_at, updated_at)
    VALUES (@id, @projectId, @blobId, @fileName, @at, @at)
    RETURNING ${COLUMNS}`);
  // Index extensions_by_project.
  const count = db
    .prepare<[object], number>(`
      SELECT COUNT(*) FROM extensions WHERE project_id = @projectId AND deleted_at IS NULL`)
    .pluck();
  const byId = db.prepare<[object], ExtensionRow>(`
    SELECT ${COLUMNS} FROM extensions
    WHERE id = @id AND project_id = @projectId AND deleted_at IS NULL`);
  const bury = db.prepare<[object]>(`
    UPDATE extensions SET deleted_at = @at, updated_at = @at
    WHERE id = @id AND project_id = @projectId AND deleted_at IS NULL`);
  // Index extensions_deleted.
  const purge = db
    .prepare<[number], string>(`
      DELETE FROM extensions WHERE id IN (
        SELECT id FROM extensions WHERE deleted_at IS NOT NULL AND NOT ${IS_LOADED} LIMIT ?)
      RETURNING blob_id`)
    .pluck();
  const forget = db.prepare<[object]>(`
    DELETE FROM blobs
    WHERE id = @blobId AND kind = 'EXTENSION'
      AND NOT EXISTS (SELECT 1 FROM extensions WHERE blob_id = blobs.id)`);
  const gone = (max: number): string[] => {
    const dropped = purge.all(max);
    for (const blobId of dropped) forget.run({ blobId });
    return dropped;
  };

  return {
    createExtension(wanted, max) {
      if (!isFree.get(wanted)) return 'taken';
      if ((count.get(wanted) ?? 0) >= max) return 'full';
      return must(insert.get(wanted), 'extension just made');
    },
    getExtension: (wanted) => byId.get(wanted),
    deleteExtension(wanted) {
      if (bury.run(wanted).changes === 0) return undefined;
      return { dropped: gone(PURGED_AT_ONCE) };
    },
    purgeExtensions: gone,
    dropExtensionBlob: (wanted) =>
      isFree.get(wanted) !== undefined && forget.run(wanted).changes > 0,
  };
}

/** Beside the one that is deleted, what a minute has left. */
const PURGED_AT_ONCE = 100;

/** What the session is to load; undefined for none. A deleted one is loaded all the same. */
export function extensionOffers({ db }: Tx): (sessionId: string) => LeasedExtension | undefined {
  const bySession = db.prepare<[string], LeasedExtension>(`
    SELECT extensions.id AS id, extensions.blob_id AS blobId, blobs.sha256 AS sha256
    FROM sessions
    JOIN extensions ON extensions.id = ${NAMED}
      AND extensions.project_id = sessions.project_id
    JOIN blobs ON blobs.id = extensions.blob_id
    WHERE sessions.id = ?`);
  return (sessionId) => bySession.get(sessionId);
}
