/**
 * Lists of sessions in SQLite, newest first. Each way of asking has the statement whose index holds
 * the order: what is read is what is shown, however many sessions there have been.
 */
import type { SessionOps } from '../../types/sessions.ts';
import type { Tx } from '../engine/transaction.ts';
import { LISTED_COLUMNS, listedSession, type StoredListed } from './session-rows.ts';

export function sessionList({ db }: Tx): SessionOps['listSessions'] {
  const newest = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId ORDER BY id DESC LIMIT @max`); // index sessions_by_project
  const ofStatus = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId AND status = @status
    ORDER BY id DESC LIMIT @max`); // index sessions_by_status
  // By the key of session_metadata. CROSS JOIN keeps this order of the two tables.
  const found = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS}
    FROM (SELECT session_id FROM session_metadata
      WHERE project_id = @projectId AND path = @path AND value = @value) AS found
    CROSS JOIN sessions ON sessions.id = found.session_id
    WHERE @status IS NULL OR status = @status
    ORDER BY found.session_id DESC LIMIT @max`);
  // Index sessions_by_status.
  const foundOfStatus = db.prepare<[object], StoredListed>(`
    SELECT ${LISTED_COLUMNS} FROM sessions
    WHERE project_id = @projectId AND status = @status
      AND EXISTS (SELECT 1 FROM session_metadata
        WHERE project_id = @projectId AND path = @path AND value = @value
          AND session_id = sessions.id)
    ORDER BY id DESC LIMIT @max`);

  return ({ projectId, status = null, metadata, max }) => {
    const wanted = { projectId, status, max };
    if (!metadata) return (status === null ? newest : ofStatus).all(wanted).map(listedSession);
    const { keys, value } = metadata;
    // Nearly all sessions are COMPLETED: of these the metadata tells more than the status.
    const rows = status === null || status === 'COMPLETED' ? found : foundOfStatus;
    return rows.all({ ...wanted, path: JSON.stringify(keys), value }).map(listedSession);
  };
}
