/**
 * Stored files (blobs) in SQLite, and their owners: downloads and extensions. The rows are deleted
 * together, and the file on disk after the commit. A crash in between leaves a file without a row,
 * which core/files/orphan-sweep.ts removes.
 */

import { must } from '../../../proto/common/must.ts';
import { oldIds } from '../../common/ids.ts';
import type { WorkItemStatements } from '../operations/work-items.ts';
import type {
  BlobOps,
  BlobRow,
  DownloadFilter,
  DownloadOps,
  DownloadRow,
  ExtensionOps,
  ExtensionRow,
  LeasedExtension,
} from '../types/files.ts';
import { found } from './engine/steps.ts';
import type { Tx } from './engine/transaction.ts';
import { storedSums } from './storage.ts';
import { hasOldId } from './times.ts';

const COLUMNS = `id, session_id AS sessionId, project_id AS projectId, blob_id AS blobId, filename,
  mime_type AS mimeType, size, sha256, created_at AS createdAt`;
const MATCHING = `session_id = @sessionId AND project_id = @projectId
  AND (@filename IS NULL OR filename = @filename)
  AND (@mimeType IS NULL OR mime_type = @mimeType)
  AND (@minSize IS NULL OR size >= @minSize) AND (@maxSize IS NULL OR size <= @maxSize)
  AND (@createdAfter IS NULL OR created_at >= @createdAfter)
  AND (@createdBefore IS NULL OR created_at <= @createdBefore)`;

type Leased = { sessionId: string; projectId: string };

export function downloadOps(tx: Tx): DownloadOps {
  const { db, crashPoint } = tx;
  // Index jobs_by_lease. The work is a session, or an invocation with a session of its own.
  const leased = db.prepare<[string], Leased>(`
    SELECT COALESCE(invocations.session_id, jobs.id) AS sessionId, jobs.project_id AS projectId
    FROM jobs LEFT JOIN invocations ON invocations.id = jobs.id
    WHERE jobs.lease_id = ? AND jobs.kind IN ('invocation', 'session')`);
  const blob = db.prepare<[object], Pick<BlobRow, 'size' | 'sha256'>>(`
    SELECT size, sha256 FROM blobs
    WHERE id = @blobId AND project_id = @projectId AND kind = 'DOWNLOAD'`);
  const byBlob = db
    .prepare<[string], string>('SELECT session_id FROM downloads WHERE blob_id = ?')
    .pluck();
  const insert = db.prepare<[object]>(`
    INSERT INTO downloads (id, session_id, project_id, blob_id, filename, mime_type, size, sha256,
      created_at)
    VALUES (@id, @sessionId, @projectId, @blobId, @filename, @mimeType, @size, @sha256, @at)`);
  const byId = db.prepare<[object], DownloadRow>(`
    SELECT ${COLUMNS} FROM downloads WHERE id = @id AND project_id = @projectId`);
  const page = db.prepare<[object], DownloadRow>(`
    SELECT ${COLUMNS} FROM downloads WHERE ${MATCHING}
    ORDER BY id DESC LIMIT @limit OFFSET @offset`); // index downloads_by_session
  const total = db
    .prepare<[object], number>(`SELECT COUNT(*) FROM downloads WHERE ${MATCHING}`)
    .pluck();
  const removed = removal(tx);

  return {
    addDownload(wanted) {
      const { leaseId, blobId } = wanted;
      const work = leased.get(leaseId);
      if (!work) return 'lost';
      const named = byBlob.get(blobId);
      if (named !== undefined) return named === work.sessionId ? 'added' : 'refused';
      const found = blob.get({ blobId, projectId: work.projectId });
      if (!found) return 'refused';
      const { leaseId: _, ...own } = wanted;
      insert.run({ ...own, ...work, ...found });
      crashPoint('add-download');
      return 'added';
    },
    listDownloads(wanted) {
      const filter = nulled(wanted);
      return { rows: page.all({ ...filter, ...wanted }), total: total.get(filter) ?? 0 };
    },
    getDownload: (wanted) => byId.get(wanted),
    ...removed,
  };
}

type Removals = 'deleteDownload' | 'deleteSessionDownloads' | 'purgeDownloads';

function removal({ db }: Tx): Pick<DownloadOps, Removals> {
  const one = db
    .prepare<[object], string>(`
      DELETE FROM downloads WHERE id = @id AND project_id = @projectId RETURNING blob_id`)
    .pluck();
  const ofSession = db
    .prepare<[object], string>(`
      DELETE FROM downloads WHERE id IN (
        SELECT id FROM downloads WHERE session_id = @sessionId AND project_id = @projectId
        LIMIT @max)
      RETURNING blob_id`)
    .pluck();
  // Index downloads_by_age.
  const old = db
    .prepare<[object], string>(`
      DELETE FROM downloads WHERE id IN (
        SELECT id FROM downloads WHERE created_at < @before AND ${hasOldId('id')}
        ORDER BY created_at LIMIT @max)
      RETURNING blob_id`)
    .pluck();
  const forget = db.prepare<[string]>(`DELETE FROM blobs WHERE id = ? AND kind = 'DOWNLOAD'`);
  const forgotten = (ids: string[]): string[] => {
    for (const id of ids) forget.run(id);
    return ids;
  };

  return {
    deleteDownload: (wanted) => forgotten(one.all(wanted))[0],
    deleteSessionDownloads: (wanted) => forgotten(ofSession.all(wanted)),
    purgeDownloads: (wanted) => forgotten(old.all({ ...wanted, ...oldIds(wanted) })),
  };
}

/** What was not asked for is NULL to SQL. */
function nulled(filter: DownloadFilter): Record<string, string | number | null> {
  const { sessionId, projectId, ...rest } = filter;
  const { filename, mimeType, minSize, maxSize, createdAfter, createdBefore } = rest;
  return {
    sessionId,
    projectId,
    filename: filename ?? null,
    mimeType: mimeType ?? null,
    minSize: minSize ?? null,
    maxSize: maxSize ?? null,
    createdAfter: createdAfter ?? null,
    createdBefore: createdBefore ?? null,
  };
}

export function blobOps(tx: Tx): BlobOps {
  const { db } = tx;
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
  const { hasRoom } = storedSums(tx);
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

const EXTENSION_COLUMNS = `id, project_id AS projectId, file_name AS fileName,
  created_at AS createdAt,
  updated_at AS updatedAt`;
/** The extension of a session; the interface has two fields for it. */
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
    RETURNING ${EXTENSION_COLUMNS}`);
  // Index extensions_by_project.
  const count = db
    .prepare<[object], number>(`
      SELECT COUNT(*) FROM extensions WHERE project_id = @projectId AND deleted_at IS NULL`)
    .pluck();
  const byId = db.prepare<[object], ExtensionRow>(`
    SELECT ${EXTENSION_COLUMNS} FROM extensions
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

export function extensionOfSession({ db }: Tx): WorkItemStatements['extensionOf'] {
  const bySession = db.prepare<[string], LeasedExtension>(`
    SELECT extensions.id AS id, extensions.blob_id AS blobId, blobs.sha256 AS sha256
    FROM sessions
    JOIN extensions ON extensions.id = ${NAMED}
      AND extensions.project_id = sessions.project_id
    JOIN blobs ON blobs.id = extensions.blob_id
    WHERE sessions.id = ?`);
  return (sessionId) => found(bySession.get(sessionId));
}
