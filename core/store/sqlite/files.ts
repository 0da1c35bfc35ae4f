/**
 * Downloads in SQLite: a row with its blob's, gone together. The file goes after the commit, so a
 * crash leaves a file that no row names, which the sweep removes.
 */
import type { BlobRow } from '../types/blobs.ts';
import type { DownloadFilter, DownloadOps, DownloadRow } from '../types/files.ts';
import type { Tx } from './engine/transaction.ts';

const COLUMNS = `id, session_id AS sessionId, project_id AS projectId, blob_id AS blobId, filename,
  mime_type AS mimeType, size, sha256, created_at AS createdAt`;
const MATCHING = `session_id = @sessionId AND project_id = @projectId
  AND (@filename IS NULL OR filename = @filename)
  AND (@mimeType IS NULL OR mime_type = @mimeType)
  AND (@minSize IS NULL OR size >= @minSize) AND (@maxSize IS NULL OR size <= @maxSize)
  AND (@createdAfter IS NULL OR created_at >= @createdAfter)
  AND (@createdBefore IS NULL OR created_at <= @createdBefore)`;

type Leased = { sessionId: string; projectId: string };

export function downloadOps({ db, crashPoint }: Tx): DownloadOps {
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
  const removed = removal({ db });

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

function removal({ db }: Pick<Tx, 'db'>): Pick<DownloadOps, Removals> {
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
        SELECT id FROM downloads WHERE created_at < @before ORDER BY created_at LIMIT @max)
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
    purgeDownloads: (wanted) => forgotten(old.all(wanted)),
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
