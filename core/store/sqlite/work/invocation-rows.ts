/** An invocation's row, as every operation reads it. */
import type { InvocationRow } from '../../types/invocations.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

/**
 * In characters of JSON. Ours: what core/functions/invocations.ts would leave out is not read for
 * nothing.
 */
const LISTED_RESULTS_MAX = 64 << 10;

const columns = (results: string) => `id, project_id AS projectId, function_id AS functionId,
  version_id AS versionId, session_id AS sessionId, region, status, params, ${results} AS results,
  cause, timeout_ms AS timeoutMs, created_at AS createdAt, updated_at AS updatedAt,
  started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt`;

export const INVOCATION_COLUMNS = columns('results');
/** Of a page: without results that are large. */
export const LISTED_COLUMNS = columns(
  `CASE WHEN length(results) <= ${LISTED_RESULTS_MAX} THEN results END`,
);

export type ReadInvocation = (wanted: {
  id: string;
  projectId: string;
}) => InvocationRow | undefined;

export const invocationReader = preparedOnce(({ db }: Tx): ReadInvocation => {
  const byId = db.prepare<[object], InvocationRow>(`
    SELECT ${INVOCATION_COLUMNS} FROM invocations WHERE id = @id AND project_id = @projectId`);
  return (wanted) => byId.get(wanted);
});
