/** Invocations in SQLite. Their transitions: core/store/operations/invocations.ts. */
import { must } from '../../../../proto/common/must.ts';
import type { InvocationStatements } from '../../operations/invocations.ts';
import { INVOCATION, openStates, statesBefore } from '../../operations/states.ts';
import type { InvocationOps, InvocationRow } from '../../types/invocations.ts';
import { found } from '../engine/steps.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { inStates } from './states.ts';

/**
 * In characters of JSON. Ours: what core/functions/invocations.ts would leave out is not read for
 * nothing.
 */
const LISTED_RESULTS_MAX = 64 << 10;

const columns = (results: string) => `id, project_id AS projectId, function_id AS functionId,
  version_id AS versionId, session_id AS sessionId, region, status, params, ${results} AS results,
  cause, timeout_ms AS timeoutMs, created_at AS createdAt, updated_at AS updatedAt,
  started_at AS startedAt, ended_at AS endedAt, expires_at AS expiresAt`;

const COLUMNS = columns('results');
/** Of a page: without results that are large. */
const LISTED_COLUMNS = columns(
  `CASE WHEN length(results) <= ${LISTED_RESULTS_MAX} THEN results END`,
);

const reader = preparedOnce(({ db }: Tx): InvocationOps['getInvocation'] => {
  const byId = db.prepare<[object], InvocationRow>(`
    SELECT ${COLUMNS} FROM invocations WHERE id = @id AND project_id = @projectId`);
  return (wanted) => byId.get(wanted);
});

export const invocationStatements = preparedOnce((tx: Tx): InvocationStatements => {
  const { db } = tx;
  const read = reader(tx);
  const insert = db.prepare<[object], InvocationRow>(`
    INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status,
      params, timeout_ms, created_at, updated_at, expires_at)
    VALUES (@id, @projectId, @functionId, @versionId, @sessionId, @region, 'PENDING',
      @params, @timeoutMs, @at, @at, @expiresAt)
    RETURNING ${COLUMNS}`);
  const isPending = db.prepare<[string]>(
    `SELECT 1 FROM invocations WHERE id = ? AND status = 'PENDING'`,
  );
  const start = db.prepare<[object], InvocationRow>(`
    UPDATE invocations SET status = 'RUNNING', started_at = @at, updated_at = @at,
      expires_at = @at + timeout_ms
    WHERE id = @id AND status ${inStates(statesBefore(INVOCATION, 'RUNNING'))}
    RETURNING ${COLUMNS}`);
  const end = db.prepare<[object], InvocationRow>(`
    UPDATE invocations SET status = @status, results = @results, cause = @cause,
      ended_lease_id = @leaseId, ended_at = @at, updated_at = @at
    WHERE id = @id AND status ${inStates(openStates(INVOCATION))}
    RETURNING ${COLUMNS}`);
  const ended = db.prepare<[string]>('SELECT 1 FROM invocations WHERE ended_lease_id = ?');

  return {
    insert: (invocation) => found(must(insert.get(invocation), 'returned row')),
    read: (wanted) => found(read(wanted)),
    isPending: (id) => found(isPending.get(id) !== undefined),
    start: (id, at) => found(start.get({ id, at })),
    end: (wanted) => found(end.get(wanted)),
    endedBy: (leaseId) => found(ended.get(leaseId) !== undefined),
  };
});

export function invocationViews(tx: Tx): Omit<InvocationOps, 'acceptInvocation'> {
  const { db } = tx;
  const matching = `version_id = @versionId AND project_id = @projectId
    AND (@status IS NULL OR status = @status)`; // index invocations_by_version
  const page = db.prepare<[object], InvocationRow>(`
    SELECT ${LISTED_COLUMNS} FROM invocations WHERE ${matching}
    ORDER BY id DESC LIMIT @limit OFFSET @offset`);
  const total = db
    .prepare<[object], number>(`SELECT COUNT(*) FROM invocations WHERE ${matching}`)
    .pluck();
  return {
    getInvocation: reader(tx),
    listInvocations(wanted) {
      const filter = { ...wanted, status: wanted.status ?? null };
      return { rows: page.all(filter), total: total.get(filter) ?? 0 };
    },
  };
}
