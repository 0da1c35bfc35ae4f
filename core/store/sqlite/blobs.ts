/** Blobs in SQLite: a row is written after its file is on disk, so a row never lacks its file. */
import type { BlobOps, BlobRow } from '../types/blobs.ts';
import type { Tx } from './engine/transaction.ts';
import { storedSums } from './storage.ts';

export function blobOps({ db }: Tx): BlobOps {
  const insert = db.prepare<[BlobRow]>(`
    INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
    VALUES (@id, @projectId, @kind, @size, @sha256, @createdAt)`);
  const byId = db.prepare<[string], BlobRow>(`
    SELECT id, project_id AS projectId, kind, size, sha256, created_at AS createdAt
    FROM blobs WHERE id = ?`);
  const after = db.prepare<[{ after: string; max: number }], BlobRow>(`
    SELECT id, project_id AS projectId, kind, size, sha256, created_at AS createdAt
    FROM blobs WHERE id > @after ORDER BY id LIMIT @max`);
  const known = db.prepare<[string]>('SELECT 1 FROM blobs WHERE id = ?');
  // Indexes builds_by_archive, builds_by_bundle, contexts_by_blob and sessions_by_context_blob;
  // of downloads, extensions and parts of
  // recordings those that UNIQUE makes.
  const removeUnused = db
    .prepare<[{ before: number; max: number }], string>(`
      DELETE FROM blobs WHERE id IN (
        SELECT id FROM blobs
        WHERE created_at < @before
          AND NOT EXISTS (SELECT 1 FROM builds WHERE archive_blob_id = blobs.id)
          AND NOT EXISTS (SELECT 1 FROM builds WHERE bundle_blob_id = blobs.id)
          AND NOT EXISTS (SELECT 1 FROM contexts WHERE blob_id = blobs.id)
          AND NOT EXISTS (SELECT 1 FROM downloads WHERE blob_id = blobs.id)
          AND NOT EXISTS (SELECT 1 FROM extensions WHERE blob_id = blobs.id)
          AND NOT EXISTS (SELECT 1 FROM recording_parts WHERE blob_id = blobs.id)
          AND NOT EXISTS (SELECT 1 FROM sessions
            WHERE context_blob_id = blobs.id AND status IN ('PENDING', 'RUNNING'))
        LIMIT @max)
      RETURNING id`)
    .pluck();
  const { hasRoom } = storedSums({ db });
  return {
    addBlob(blob, within) {
      if (within && !hasRoom(blob.projectId, blob.size, within)) return 'full';
      insert.run(blob);
      return 'added';
    },
    getBlob: (id) => byId.get(id),
    listBlobs: (wanted) => after.all(wanted),
    knownBlobs: (ids) => ids.filter((id) => known.get(id) !== undefined),
    removeUnusedBlobs: (wanted) => removeUnused.all(wanted),
  };
}
