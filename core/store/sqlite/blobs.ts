/** Blobs in SQLite: a row is written after its file is on disk, so a row never lacks its file. */
import type { BlobOps, BlobRow } from '../types/blobs.ts';
import type { Tx } from './tx.ts';

export function blobOps({ db }: Tx): BlobOps {
  const insert = db.prepare<[BlobRow]>(`
    INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
    VALUES (@id, @projectId, @kind, @size, @sha256, @createdAt)`);
  const byId = db.prepare<[string], BlobRow>(`
    SELECT id, project_id AS projectId, kind, size, sha256, created_at AS createdAt
    FROM blobs WHERE id = ?`);
  const known = db.prepare<[string]>('SELECT 1 FROM blobs WHERE id = ?');
  return {
    addBlob: (blob) => void insert.run(blob),
    getBlob: (id) => byId.get(id),
    knownBlobs: (ids) => ids.filter((id) => known.get(id) !== undefined),
  };
}
