/** Recordings in SQLite. Their rules: core/store/operations/files.ts. */
import { oldIds } from '../../common/ids.ts';
import type { RecordingStatements } from '../operations/files.ts';
import type { RecordingOps } from '../types/recordings.ts';
import { queries, statements } from './engine/statements.ts';
import type { Tx } from './engine/transaction.ts';
import { hasOldId } from './times.ts';
import { IS_RECORDED, LATE_SESSION, SESSION_OF_LEASE } from './work/sessions.ts';

export function recordingStatements(tx: Tx): RecordingStatements {
  const { row, exists, write } = statements(tx);
  return {
    isRecorded: exists(IS_RECORDED),
    lockSession: () => {}, // operations run one after another
    sessionOf: row(SESSION_OF_LEASE),
    lateSessionOf: row(`
      SELECT session_id AS sessionId, recordings.project_id AS projectId
      FROM recordings JOIN sessions ON sessions.id = recordings.session_id
      WHERE lease_id = @leaseId AND sessions.ended_at > @endedAfter
      UNION ALL ${LATE_SESSION} LIMIT 1`),
    givenUpUnder: row(LATE_SESSION),
    ownerOf: row(`
      SELECT session_id AS sessionId, page_id AS pageId, number FROM recording_parts
      WHERE blob_id = ?`),
    savePage: write(`
      INSERT INTO recordings (session_id, page_id, project_id, lease_id, url, start_ms, end_ms,
        created_at, completed_at)
      VALUES (@sessionId, @pageId, @projectId, @leaseId, @url, @startMs, @endMs, @at, @completedAt)
      ON CONFLICT (session_id, page_id) DO UPDATE SET url = @url, end_ms = MAX(end_ms, @endMs),
        completed_at = COALESCE(completed_at, @completedAt)`),
    insertPart: write(`
      INSERT INTO recording_parts (session_id, page_id, number, blob_id, size, start_ms, end_ms)
      VALUES (@sessionId, @pageId, @number, @blobId, @size, @startMs, @endMs)
      ON CONFLICT (session_id, page_id, number) DO NOTHING`),
  };
}

export function recordingOps(tx: Tx): Omit<RecordingOps, 'addRecording'> {
  const { rows, write } = queries(tx);
  const request = write(`
    UPDATE recordings SET requested_at = @at
    WHERE session_id = @sessionId AND page_id = @pageId`);
  return {
    listRecordings: rows(`
      SELECT page_id AS pageId, url, start_ms AS startMs, end_ms AS endMs,
        requested_at AS requestedAt, completed_at AS completedAt,
        (SELECT COUNT(*) FROM recording_parts
          WHERE session_id = recordings.session_id AND page_id = recordings.page_id
            AND number > 0) AS segments
      FROM recordings WHERE session_id = ? ORDER BY page_id`),
    listRecordingParts: rows(`
      SELECT number, blob_id AS blobId, blobs.size, sha256, recording_parts.start_ms AS startMs,
        recording_parts.end_ms AS endMs
      FROM recordings JOIN recording_parts USING (session_id, page_id)
        JOIN blobs ON blobs.id = recording_parts.blob_id
      WHERE session_id = @sessionId AND page_id = @pageId AND recordings.project_id = @projectId
      ORDER BY number`),
    requestRecordings({ pageIds, ...rest }) {
      for (const pageId of pageIds) request({ ...rest, pageId });
    },
    purgeRecordings: purge(tx),
  };
}

function purge(tx: Tx): RecordingOps['purgeRecordings'] {
  const { rows, values, changes, write } = queries(tx);
  // Index recordings_by_age.
  const old = rows<[object], { sessionId: string; pageId: number }>(`
    SELECT session_id AS sessionId, page_id AS pageId
    FROM recordings JOIN sessions ON sessions.id = session_id
    WHERE recordings.created_at < @before AND ${hasOldId('session_id')}
      AND sessions.ended_at IS NOT NULL
    ORDER BY recordings.created_at LIMIT @max`);
  const parts = values<[object], string>(`
    DELETE FROM recording_parts WHERE (session_id, page_id, number) IN (
      SELECT session_id, page_id, number FROM recording_parts
      WHERE session_id = @sessionId AND page_id = @pageId LIMIT @max)
    RETURNING blob_id`);
  const page = changes<[object]>(`
    DELETE FROM recordings WHERE session_id = @sessionId AND page_id = @pageId`);
  const forget = write<[string]>(`DELETE FROM blobs WHERE id = ? AND kind = 'RECORDING'`);

  return ({ max, ...age }) => {
    const blobIds: string[] = [];
    let rows = 0;
    for (const one of old({ ...oldIds(age), max })) {
      const removed = parts({ ...one, max: max - rows });
      blobIds.push(...removed);
      rows += removed.length;
      if (rows >= max) break;
      rows += page(one);
    }
    for (const id of blobIds) forget(id);
    return { blobIds, rows };
  };
}
