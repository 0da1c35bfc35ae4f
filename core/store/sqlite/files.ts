/**
 * Rows of stored files (blobs) and of their owners, downloads and extensions; the bytes are files
 * on disk. The rules are in core/store/operations/files.ts. The row of a blob and that of its owner
 * are deleted in one transaction, the file on disk after it. A crash in between leaves a file
 * without a row, which core/files/orphan-sweep.ts removes.
 */
import { oldIds } from '../../common/ids.ts';
import type {
  BlobStatements,
  DownloadStatements,
  ExtensionStatements,
} from '../operations/files.ts';
import type { WorkItemStatements } from '../operations/work-items.ts';
import type { BlobOps, DownloadOps, ExtensionOps } from '../types/files.ts';
import { pages, queries, statements } from './engine/statements.ts';
import { found } from './engine/steps.ts';
import { preparedOnce, type Tx } from './engine/transaction.ts';
import { hasOldId } from './times.ts';
import { LATE_SESSION, SESSION_OF_LEASE } from './work/sessions.ts';

const BLOB = 'id, project_id AS projectId, kind, size, sha256, created_at AS createdAt';

export const blobStatements = preparedOnce((tx: Tx): BlobStatements => {
  const { row, write } = statements(tx);
  return {
    insert: write(`
      INSERT INTO blobs (id, project_id, kind, size, sha256, created_at)
      VALUES (@id, @projectId, @kind, @size, @sha256, @createdAt)`),
    find: row(`
      SELECT size, sha256 FROM blobs
      WHERE id = @blobId AND project_id = @projectId AND kind = @kind`),
  };
});

export function blobOps(tx: Tx): Omit<BlobOps, 'addBlob'> {
  const { row, rows, values, exists } = queries(tx);
  const isKnown = exists<[string]>('SELECT 1 FROM blobs WHERE id = ?');
  return {
    getBlob: row(`SELECT ${BLOB} FROM blobs WHERE id = ?`),
    listBlobs: rows(`SELECT ${BLOB} FROM blobs WHERE id > @after ORDER BY id LIMIT @max`),
    knownBlobs: (ids) => ids.filter((id) => isKnown(id)),
    // Indexes builds_by_archive, builds_by_bundle, contexts_by_blob and sessions_by_context_blob;
    // of downloads, extensions and parts of recordings those of their UNIQUE.
    removeUnusedBlobs: values(`
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
      RETURNING id`),
  };
}

const DOWNLOAD = `id, session_id AS sessionId, project_id AS projectId, blob_id AS blobId, filename,
  mime_type AS mimeType, size, sha256, created_at AS createdAt`;
const MATCHING = `session_id = @sessionId AND project_id = @projectId
  AND (@filename IS NULL OR filename = @filename)
  AND (@mimeType IS NULL OR mime_type = @mimeType)
  AND (@minSize IS NULL OR size >= @minSize) AND (@maxSize IS NULL OR size <= @maxSize)
  AND (@createdAfter IS NULL OR created_at >= @createdAfter)
  AND (@createdBefore IS NULL OR created_at <= @createdBefore)`;

export function downloadStatements(tx: Tx): DownloadStatements {
  const { row, value, write } = statements(tx);
  return {
    sessionOf: row(SESSION_OF_LEASE),
    lateSessionOf: row(LATE_SESSION),
    ownerOf: value('SELECT session_id FROM downloads WHERE blob_id = ?'),
    insert: write(`
      INSERT INTO downloads (id, session_id, project_id, blob_id, filename, mime_type, size, sha256,
        created_at)
      VALUES (@id, @sessionId, @projectId, @blobId, @filename, @mimeType, @size, @sha256,
        @createdAt)`),
  };
}

export function downloadOps(tx: Tx): Omit<DownloadOps, 'addDownload'> {
  const { row, values, write } = queries(tx);
  const one = values<[object], string>(`
    DELETE FROM downloads WHERE id = @id AND project_id = @projectId RETURNING blob_id`);
  const ofSession = values<[object], string>(`
    DELETE FROM downloads WHERE id IN (
      SELECT id FROM downloads WHERE session_id = @sessionId AND project_id = @projectId
      LIMIT @max)
    RETURNING blob_id`);
  // Index downloads_by_age.
  const old = values<[object], string>(`
    DELETE FROM downloads WHERE id IN (
      SELECT id FROM downloads WHERE created_at < @before AND ${hasOldId('id')}
      ORDER BY created_at LIMIT @max)
    RETURNING blob_id`);
  const forget = write<[string]>(`DELETE FROM blobs WHERE id = ? AND kind = 'DOWNLOAD'`);
  const forgotten = (ids: string[]): string[] => {
    for (const id of ids) forget(id);
    return ids;
  };
  return {
    getDownload: row(`
      SELECT ${DOWNLOAD} FROM downloads WHERE id = @id AND project_id = @projectId`),
    // Index downloads_by_session.
    listDownloads: pages(tx, { columns: DOWNLOAD, from: `downloads WHERE ${MATCHING}` }),
    deleteDownload: (wanted) => forgotten(one(wanted))[0],
    deleteSessionDownloads: (wanted) => forgotten(ofSession(wanted)),
    purgeDownloads: (wanted) => forgotten(old({ ...wanted, ...oldIds(wanted) })),
  };
}

const EXTENSION = `id, project_id AS projectId, file_name AS fileName, created_at AS createdAt,
  updated_at AS updatedAt`;
const EXISTING = 'id = @id AND project_id = @projectId AND deleted_at IS NULL';
/** The first extension of a session; the interface has two fields for it. */
const FIRST = `lower(COALESCE(sessions.extension_id,
  sessions.params ->> '$.extensionId', sessions.params ->> '$.browserSettings.extensionId'))`;
const OTHERS = `json_each(sessions.params, '$.browserSettings.extensions')`;
/** Ids of the extensions of a session. */
const NAMED = `SELECT ${FIRST} UNION SELECT lower(value) FROM ${OTHERS}`;
const IS_CONCERNED = `sessions.status IN ('PENDING', 'RUNNING')
  AND sessions.project_id IN (SELECT project_id FROM extensions WHERE deleted_at IS NOT NULL)`;
/**
 * Those of all open sessions that may have named a deleted one: params are not read again for each.
 * Index sessions_open_by_project.
 */
const LOADED = `SELECT COALESCE(${FIRST}, '') FROM sessions WHERE ${IS_CONCERNED}
  UNION SELECT lower(value) FROM sessions CROSS JOIN ${OTHERS} WHERE ${IS_CONCERNED}`;

export function extensionStatements(tx: Tx): ExtensionStatements {
  const { number, exists, changed, returned } = statements(tx);
  const { values, changes } = queries(tx);
  // Index extensions_deleted.
  const purge = values<[number], string>(`
    DELETE FROM extensions WHERE id IN (
      SELECT id FROM extensions WHERE deleted_at IS NOT NULL AND id NOT IN (${LOADED}) LIMIT ?)
    RETURNING blob_id`);
  const dropBlob = changes<[object]>(`
    DELETE FROM blobs
    WHERE id = @blobId AND kind = 'EXTENSION'
      AND NOT EXISTS (SELECT 1 FROM extensions WHERE blob_id = @blobId)`);
  return {
    isOwned: exists('SELECT 1 FROM extensions WHERE blob_id = ?'),
    // Index extensions_by_project.
    countOf: number('SELECT COUNT(*) FROM extensions WHERE project_id = ? AND deleted_at IS NULL'),
    insert: returned(`
      INSERT INTO extensions (id, project_id, blob_id, file_name, created_at, updated_at)
      VALUES (@id, @projectId, @blobId, @fileName, @at, @at)
      RETURNING ${EXTENSION}`),
    remove: changed(`UPDATE extensions SET deleted_at = @at, updated_at = @at WHERE ${EXISTING}`),
    purge(max) {
      const blobIds = purge(max);
      for (const blobId of blobIds) dropBlob({ blobId });
      return found(blobIds);
    },
    dropBlob: (blobId) => found(dropBlob({ blobId }) > 0),
  };
}

export function extensionViews(tx: Tx): Pick<ExtensionOps, 'getExtension'> {
  return { getExtension: queries(tx).row(`SELECT ${EXTENSION} FROM extensions WHERE ${EXISTING}`) };
}

export function extensionsOfSession(tx: Tx): WorkItemStatements['extensionsOf'] {
  return statements(tx).rows(`
    SELECT extensions.id AS id, extensions.blob_id AS blobId, blobs.sha256 AS sha256
    FROM sessions
    CROSS JOIN extensions ON extensions.id IN (${NAMED})
      AND extensions.project_id = sessions.project_id
    JOIN blobs ON blobs.id = extensions.blob_id
    WHERE sessions.id = ? ORDER BY extensions.id`);
}
