/**
 * Certificates in SQLite. A deleted one stays as a tombstone while an open session is to trust it.
 * Rules: core/store/operations/files.ts.
 */
import type { CertificateStatements } from '../operations/files.ts';
import type { WorkItemStatements } from '../operations/work-items.ts';
import type { CertificateOps } from '../types/files.ts';
import { queries, statements } from './engine/statements.ts';
import type { Tx } from './engine/transaction.ts';

const COLUMNS = `id, project_id AS projectId, created_at AS createdAt, updated_at AS updatedAt`;
const EXISTING = 'id = @id AND project_id = @projectId AND deleted_at IS NULL';
const CERTIFICATES = `json_each(sessions.params, '$.proxySettings.caCertificates')`;
/** Ids of the certificates of a session. */
const NAMED = `SELECT lower(value) FROM ${CERTIFICATES}`;
/**
 * Those of all open sessions that may have named a deleted one: params are not read again for each.
 * Index sessions_open_by_project.
 */
const TRUSTED = `SELECT lower(value) FROM sessions CROSS JOIN ${CERTIFICATES}
  WHERE sessions.status IN ('PENDING', 'RUNNING') AND sessions.project_id IN (
    SELECT project_id FROM certificates WHERE deleted_at IS NOT NULL)`;

export function certificateStatements(tx: Tx): CertificateStatements {
  const { number, returned } = statements(tx);
  return {
    // Index certificates_by_project.
    countOf: number(
      'SELECT COUNT(*) FROM certificates WHERE project_id = ? AND deleted_at IS NULL',
    ),
    // Index certificates_deleted.
    deletedOf: number(
      'SELECT COUNT(*) FROM certificates WHERE project_id = ? AND deleted_at IS NOT NULL',
    ),
    insert: returned(`
      INSERT INTO certificates (id, project_id, pem, created_at, updated_at)
      VALUES (@id, @projectId, @pem, @at, @at)
      RETURNING ${COLUMNS}`),
  };
}

export function certificateOps(tx: Tx): Omit<CertificateOps, 'createCertificate'> {
  const { row, rows, changes } = queries(tx);
  const remove = changes<[object]>(
    `UPDATE certificates SET deleted_at = @at, updated_at = @at WHERE ${EXISTING}`,
  );
  return {
    getCertificate: row(`
      SELECT ${COLUMNS}, length(pem) AS size FROM certificates WHERE ${EXISTING}`),
    // Index certificates_by_project.
    listCertificates: rows(`
      SELECT ${COLUMNS} FROM certificates WHERE project_id = @projectId AND deleted_at IS NULL
      ORDER BY id DESC LIMIT @max`),
    deleteCertificate: (wanted) => remove(wanted) > 0,
    // Index certificates_deleted.
    purgeCertificates: changes(`
      DELETE FROM certificates WHERE id IN (
        SELECT id FROM certificates WHERE deleted_at IS NOT NULL AND id NOT IN (${TRUSTED})
        LIMIT ?)`),
  };
}

export function certificatesOfSession(tx: Tx): WorkItemStatements['certificatesOf'] {
  return statements(tx).values(`
    SELECT certificates.pem FROM sessions
    CROSS JOIN certificates ON certificates.id IN (${NAMED})
      AND certificates.project_id = sessions.project_id
    WHERE sessions.id = ? ORDER BY certificates.id`);
}
