/**
 * What belongs to leased work, in SQLite: its row with its bundle, context, extensions and
 * certificates.
 */
import type { WorkItemStatements } from '../../operations/work-items.ts';
import type { LeasedSession } from '../../types/leases.ts';
import { certificatesOfSession } from '../certificates.ts';
import { contextStarts } from '../contexts.ts';
import { frequentQueries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { extensionsOfSession } from '../files.ts';

type SessionRow = Pick<LeasedSession, 'id' | 'projectId' | 'params' | 'timeoutMs'> & {
  keepAlive: number;
};

export const workItemStatements = preparedOnce((tx: Tx): WorkItemStatements => {
  const { row } = statements(tx);
  const session = frequentQueries(tx).row<[string], SessionRow>(`
    SELECT id, project_id AS projectId, params, timeout_ms AS timeoutMs, keep_alive AS keepAlive
    FROM sessions WHERE id = ?`);
  return {
    ...contextStarts(tx),
    invocation: row(`
      SELECT invocations.id AS id, invocations.project_id AS projectId,
        invocations.session_id AS sessionId, invocations.version_id AS versionId,
        invocations.params AS params, invocations.timeout_ms AS timeoutMs,
        invocations.region AS region, functions.name AS functionName, blobs.id AS bundleBlobId,
        blobs.sha256 AS bundleSha256, sessions.params AS sessionParams,
        invocations.function_id AS functionId,
        (SELECT COUNT(*) FROM function_secrets
          WHERE function_secrets.function_id = invocations.function_id) AS secretCount
      FROM invocations
      JOIN sessions ON sessions.id = invocations.session_id
      JOIN functions ON functions.id = invocations.function_id
      JOIN versions ON versions.id = invocations.version_id
      JOIN builds ON builds.id = versions.build_id
      JOIN blobs ON blobs.id = builds.bundle_blob_id
      WHERE invocations.id = ?`),
    build: row(`
      SELECT id, project_id AS projectId, entrypoint, archive_blob_id AS archiveBlobId
      FROM builds WHERE id = ?`),
    session(id) {
      const stored = session(id);
      return found(stored && { ...stored, keepAlive: stored.keepAlive === 1 });
    },
    extensionsOf: extensionsOfSession(tx),
    certificatesOf: certificatesOfSession(tx),
  };
});
