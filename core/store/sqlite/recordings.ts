/**
 * Recordings in SQLite. They come under the lease of their session's work; its id stays with them,
 * so that what was still to be encoded at the session's end can come later.
 */
import { oldIds } from '../../common/ids.ts';
import type { BlobRow } from '../types/files.ts';
import type { RecordingOps, RecordingPart, RecordingRow } from '../types/recordings.ts';
import type { Tx } from './engine/transaction.ts';
import { hasOldId } from './times.ts';

type Work = { sessionId: string; projectId: string };
type Part = { sessionId: string; pageId: number; number: number };

export function recordingOps(tx: Tx): RecordingOps {
  const { db } = tx;
  const list = db.prepare<[string], RecordingRow>(`
    SELECT page_id AS pageId, url, start_ms AS startMs, end_ms AS endMs,
      requested_at AS requestedAt, completed_at AS completedAt,
      (SELECT COUNT(*) FROM recording_parts
        WHERE session_id = recordings.session_id AND page_id = recordings.page_id
          AND number > 0) AS segments
    FROM recordings WHERE session_id = ? ORDER BY page_id`);
  const parts = db.prepare<[object], RecordingPart>(`
    SELECT number, blob_id AS blobId, blobs.size, sha256, recording_parts.start_ms AS startMs,
      recording_parts.end_ms AS endMs
    FROM recordings JOIN recording_parts USING (session_id, page_id)
      JOIN blobs ON blobs.id = recording_parts.blob_id
    WHERE session_id = @sessionId AND page_id = @pageId AND recordings.project_id = @projectId
    ORDER BY number`);
  const request = db.prepare<[object]>(`
    UPDATE recordings SET requested_at = @at
    WHERE session_id = @sessionId AND page_id = @pageId`);

  return {
    ...arrivals(tx),
    listRecordings: (sessionId) => list.all(sessionId),
    listRecordingParts: (wanted) => parts.all(wanted),
    requestRecordings({ pageIds, ...rest }) {
      for (const pageId of pageIds) request.run({ ...rest, pageId });
    },
    purgeRecordings: purge(tx),
  };
}

function arrivals({
  db,
  crashPoint,
}: Tx): Pick<RecordingOps, 'addRecording' | 'findRecordingLease'> {
  // Index jobs_by_lease. The work is a session, or an invocation with a session of its own.
  const live = db.prepare<[object], Work>(`
    SELECT COALESCE(invocations.session_id, jobs.id) AS sessionId, jobs.project_id AS projectId
    FROM jobs LEFT JOIN invocations ON invocations.id = jobs.id
    WHERE jobs.lease_id = @leaseId AND jobs.kind IN ('invocation', 'session')`);
  const late = db.prepare<[object], Work>(`
    SELECT session_id AS sessionId, recordings.project_id AS projectId
    FROM recordings JOIN sessions ON sessions.id = recordings.session_id
    WHERE lease_id = @leaseId AND sessions.ended_at > @endedAfter LIMIT 1`);
  const tell = db.prepare<[object]>(`
    INSERT INTO recordings (session_id, page_id, project_id, lease_id, url, start_ms, end_ms,
      created_at, completed_at)
    VALUES (@sessionId, @pageId, @projectId, @leaseId, @url, @startMs, @endMs, @at, @completedAt)
    ON CONFLICT (session_id, page_id) DO UPDATE SET url = @url, end_ms = MAX(end_ms, @endMs),
      completed_at = COALESCE(completed_at, @completedAt)`);
  const blob = db
    .prepare<[object], number>(`
      SELECT size FROM blobs
      WHERE id = @blobId AND project_id = @projectId AND kind = 'RECORDING'`)
    .pluck();
  const byBlob = db.prepare<[string], Part>(`
    SELECT session_id AS sessionId, page_id AS pageId, number FROM recording_parts
    WHERE blob_id = ?`);
  const insert = db.prepare<[object & { size: BlobRow['size'] }]>(`
    INSERT INTO recording_parts (session_id, page_id, number, blob_id, size, start_ms, end_ms)
    VALUES (@sessionId, @pageId, @number, @blobId, @size, @startMs, @endMs)
    ON CONFLICT (session_id, page_id, number) DO NOTHING`);

  return {
    addRecording({ complete, endedAfter, ...wanted }) {
      const { leaseId, blobId, pageId, number, at } = wanted;
      const work = live.get({ leaseId }) ?? late.get({ leaseId, endedAfter });
      if (!work) return 'lost';
      const row = { ...wanted, ...work, completedAt: complete ? at : null };
      const size = blobId === null ? 0 : blob.get({ blobId, projectId: work.projectId });
      if (size === undefined) return 'refused';
      const named = blobId === null ? undefined : byBlob.get(blobId);
      const isSame = named?.sessionId === work.sessionId && named.pageId === pageId;
      if (named && !(isSame && named.number === number)) return 'refused';
      tell.run(row);
      if (blobId !== null && !named) insert.run({ ...row, size });
      crashPoint('add-recording');
      return 'added';
    },
    findRecordingLease: (wanted) => late.get(wanted)?.projectId,
  };
}

function purge({ db }: Tx): RecordingOps['purgeRecordings'] {
  const old = db.prepare<[object], { sessionId: string; pageId: number }>(`
    SELECT session_id AS sessionId, page_id AS pageId
    FROM recordings JOIN sessions ON sessions.id = session_id
    WHERE recordings.created_at < @before AND ${hasOldId('session_id')}
      AND sessions.ended_at IS NOT NULL
    ORDER BY recordings.created_at LIMIT @max`); // index recordings_by_age
  const parts = db
    .prepare<[object], string>(`
      DELETE FROM recording_parts WHERE (session_id, page_id, number) IN (
        SELECT session_id, page_id, number FROM recording_parts
        WHERE session_id = @sessionId AND page_id = @pageId LIMIT @max)
      RETURNING blob_id`)
    .pluck();
  const page = db.prepare<[object]>(`
    DELETE FROM recordings WHERE session_id = @sessionId AND page_id = @pageId`);
  const forget = db.prepare<[string]>(`DELETE FROM blobs WHERE id = ? AND kind = 'RECORDING'`);

  return ({ max, ...age }) => {
    const blobIds: string[] = [];
    let rows = 0;
    for (const one of old.all({ ...oldIds(age), max })) {
      const gone = parts.all({ ...one, max: max - rows });
      blobIds.push(...gone);
      rows += gone.length;
      if (rows >= max) break;
      rows += page.run(one).changes;
    }
    for (const id of blobIds) forget.run(id);
    return { blobIds, rows };
  };
}
