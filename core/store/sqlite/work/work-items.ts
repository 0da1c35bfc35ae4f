/** What belongs to leased work, in SQLite: its row with its bundle, context and extension. */
import type { WorkItemStatements } from '../../operations/work-items.ts';
import type { LeasedBuild, LeasedInvocation } from '../../types/leases.ts';
import { contextStarts } from '../contexts.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { extensionOfSession } from '../files.ts';

type SessionRow = {
  id: string;
  projectId: string;
  params: string;
  timeoutMs: number;
  keepAlive: number;
};
type Beside = 'kind' | 'leaseId' | 'context' | 'extension';

export const workItemStatements = preparedOnce((tx: Tx): WorkItemStatements => {
  const { db } = tx;
  const invocation = db.prepare<[string], Omit<LeasedInvocation, Beside>>(`
    SELECT invocations.id AS id, invocations.project_id AS projectId,
      invocations.session_id AS sessionId, invocations.version_id AS versionId,
      invocations.params AS params, invocations.timeout_ms AS timeoutMs,
      invocations.region AS region, functions.name AS functionName, blobs.id AS bundleBlobId,
      blobs.sha256 AS bundleSha256, sessions.params AS sessionParams
    FROM invocations
    JOIN sessions ON sessions.id = invocations.session_id
    JOIN functions ON functions.id = invocations.function_id
    JOIN versions ON versions.id = invocations.version_id
    JOIN builds ON builds.id = versions.build_id
    JOIN blobs ON blobs.id = builds.bundle_blob_id
    WHERE invocations.id = ?`);
  const build = db.prepare<[string], Omit<LeasedBuild, Beside | 'timeoutMs'>>(`
    SELECT id, project_id AS projectId, entrypoint, archive_blob_id AS archiveBlobId
    FROM builds WHERE id = ?`);
  const session = db.prepare<[string], SessionRow>(`
    SELECT id, project_id AS projectId, params, timeout_ms AS timeoutMs, keep_alive AS keepAlive
    FROM sessions WHERE id = ?`);
  return {
    ...contextStarts(tx),
    invocation: (id) => found(invocation.get(id)),
    build: (id) => found(build.get(id)),
    session(id) {
      const row = session.get(id);
      return found(row && { ...row, keepAlive: row.keepAlive === 1 });
    },
    extensionOf: extensionOfSession(tx),
  };
});
