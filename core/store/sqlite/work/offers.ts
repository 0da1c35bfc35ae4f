/** Work as a runner is offered it: a job's row with all that belongs to it. */
import { must } from '../../../../proto/common/must.ts';
import type { LeasedBuild, LeasedInvocation, LeasedWork } from '../../types/leases.ts';
import { contextMoves } from '../contexts.ts';
import type { Tx } from '../engine/transaction.ts';
import { extensionOffers } from '../files.ts';
import { BUILD_TIMEOUT_MS } from './builds.ts';
import type { JobRow } from './queue.ts';

type LeasedSessionRow = {
  id: string;
  projectId: string;
  params: string;
  timeoutMs: number;
  keepAlive: number;
};

type OfferedBeside = 'kind' | 'leaseId' | 'context' | 'extension';

/** What a runner needs to do a job. */
export function offers(tx: Tx): (job: JobRow, leaseId: string) => LeasedWork {
  const { db } = tx;
  const contexts = contextMoves(tx);
  const extensions = extensionOffers(tx);
  const invocation = db.prepare<[string], Omit<LeasedInvocation, OfferedBeside>>(`
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
  const build = db.prepare<[string], Omit<LeasedBuild, 'kind' | 'leaseId' | 'timeoutMs'>>(`
    SELECT id, project_id AS projectId, entrypoint, archive_blob_id AS archiveBlobId
    FROM builds WHERE id = ?`);
  const session = db.prepare<[string], LeasedSessionRow>(`
    SELECT id, project_id AS projectId, params, timeout_ms AS timeoutMs, keep_alive AS keepAlive
    FROM sessions WHERE id = ?`);
  return ({ id, kind, traceparent }, leaseId) => {
    if (kind === 'invocation') {
      const found = must(invocation.get(id), 'function, version and bundle of an invocation');
      const context = contexts.offer(found.sessionId);
      const extension = extensions(found.sessionId);
      const loaded = { ...(context && { context }), ...(extension && { extension }) };
      return { kind, leaseId, traceparent, ...found, ...loaded };
    }
    if (kind === 'session') {
      const { keepAlive, ...found } = must(session.get(id), 'session of a job');
      const context = contexts.offer(id);
      const extension = extensions(id);
      const loaded = { ...(context && { context }), ...(extension && { extension }) };
      return { kind, leaseId, traceparent, ...found, keepAlive: keepAlive === 1, ...loaded };
    }
    const timeoutMs = BUILD_TIMEOUT_MS;
    return { kind, leaseId, traceparent, ...must(build.get(id), 'build of a job'), timeoutMs };
  };
}
