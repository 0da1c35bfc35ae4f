/**
 * Certificates in PostgreSQL. A deleted one stays as a tombstone while an open session is to trust
 * it. Rules: core/store/operations/files.ts.
 */
import type { CertificateStatements } from '../../operations/files.ts';
import type { WorkItemStatements } from '../../operations/work-items.ts';
import type { CertificateOps } from '../../types/files.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { deleteSome } from '../maintenance/some.ts';
import { isNamed, listOf } from './json-list.ts';

const COLUMNS = `id, project_id AS "projectId", created_at AS "createdAt", updated_at AS
  "updatedAt"`;
const EXISTING = 'id = @id AND project_id = @projectId AND deleted_at IS NULL';
const CERTIFICATES = listOf('{proxySettings,caCertificates}');
/** Ids of the certificates of a session. */
const NAMED = `SELECT lower(value) FROM ${CERTIFICATES} AS value`;
/**
 * Those of all open sessions that may have named a deleted one: params are not read again for each.
 * Index sessions_open_by_project.
 */
const TRUSTED = `SELECT lower(value) FROM sessions CROSS JOIN LATERAL ${CERTIFICATES} AS value
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

export function certificateOps(tx: Tx): InReads<Omit<CertificateOps, 'createCertificate'>> {
  const { row, rows, changes, changed } = statements(tx);
  const remove = changed<[object]>(
    `UPDATE certificates SET deleted_at = @at, updated_at = @at WHERE ${EXISTING}`,
  );
  return {
    getCertificate: row(`
      SELECT ${COLUMNS}, length(pem) AS size FROM certificates WHERE ${EXISTING}`),
    // Index certificates_by_project.
    listCertificates: rows(`
      SELECT ${COLUMNS} FROM certificates WHERE project_id = @projectId AND deleted_at IS NULL
      ORDER BY id DESC LIMIT @max`),
    deleteCertificate: remove,
    // Index certificates_deleted.
    purgeCertificates: changes(
      deleteSome(
        'certificates',
        `certificates WHERE deleted_at IS NOT NULL AND id NOT IN (${TRUSTED}) LIMIT ?`,
      ),
    ),
  };
}

export function certificatesOfSession(tx: Tx): WorkItemStatements['certificatesOf'] {
  const pems = statements(tx).values<[object], string>(`
    SELECT pem FROM certificates WHERE ${isNamed(NAMED)} ORDER BY id`);
  return (sessionId) => pems({ sessionId });
}
