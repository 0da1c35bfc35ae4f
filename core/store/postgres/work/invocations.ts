/** Invocations in PostgreSQL. Their transitions: core/store/operations/invocations.ts. */
import { must } from '../../../../proto/common/must.ts';
import { BUILT_IN } from '../../../common/built-in.ts';
import type { ChangedInvocation, InvocationStatements } from '../../operations/invocations.ts';
import { INVOCATION, openStates, statesBefore } from '../../operations/states.ts';
import type { InvocationOps, InvocationStatus } from '../../types/invocations.ts';
import { inStates, pages, statements } from '../engine/statements.ts';
import { found, type InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { rowsBefore } from './before.ts';

/**
 * In characters of JSON. Ours: what core/functions/invocations.ts would leave out is not read for
 * nothing.
 */
const LISTED_RESULTS_MAX = 64 << 10;

const columns = (
  results: string,
  params = 'params, ',
) => `id, project_id AS "projectId", function_id AS "functionId",
  version_id AS "versionId", session_id AS "sessionId", region, status,
  ${params}${results} AS results, cause, timeout_ms AS "timeoutMs", created_at AS "createdAt",
  updated_at AS "updatedAt", started_at AS "startedAt", ended_at AS "endedAt",
  expires_at AS "expiresAt", schedule_id AS "scheduleId", scheduled_for AS "scheduledFor"`;

export const INVOCATION_COLUMNS = columns('results');
const COLUMNS = INVOCATION_COLUMNS;
/** Of a page: without results that are large. */
const LISTED_COLUMNS = columns(
  `CASE WHEN length(results) <= ${LISTED_RESULTS_MAX} THEN results END`,
);
/** After a transition: without params, which no event shows. */
export const CHANGED_COLUMNS = columns('results', '');
/** Of a function that was not deleted. */
const BY_ID = `
  SELECT ${COLUMNS} FROM invocations WHERE id = @id AND project_id = @projectId
    AND EXISTS (SELECT 1 FROM functions WHERE id = function_id AND deleted_at IS NULL)`;

/** Of a one-shot: its caller has left, and nobody reads its result. */
const IS_RELEASED = `EXISTS (
  SELECT 1 FROM jobs WHERE jobs.id = invocations.id AND released_at IS NOT NULL)`;

export function invocationStatements(tx: Tx): InvocationStatements {
  const { row, exists, write } = statements(tx);
  return {
    isRunnable: exists(`
      SELECT 1 FROM versions JOIN functions ON functions.id = versions.function_id
      WHERE versions.id = ? AND functions.deleted_at IS NULL`),
    insert: write(`
      INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status,
        params, timeout_ms, created_at, updated_at, expires_at, schedule_id, scheduled_for)
      VALUES (@id, @projectId, @functionId, @versionId, @sessionId, @region, 'PENDING',
        @params, @timeoutMs, @at, @at, @expiresAt, @scheduleId, @scheduledFor)`),
    read: row(BY_ID),
    isPending: exists(`SELECT 1 FROM invocations WHERE id = ? AND status = 'PENDING'`),
    ...transitionStatements(tx),
    endedBy: exists('SELECT 1 FROM invocations WHERE ended_lease_id = ?'),
  };
}

/** Those of held jobs, which before.ts knows, write what their events show. */
function transitionStatements(tx: Tx): Pick<InvocationStatements, 'start' | 'end'> {
  const { row, write } = statements(tx);
  const start = write<[object]>(`
    UPDATE invocations SET status = @status, started_at = @startedAt, updated_at = @updatedAt,
      expires_at = @expiresAt
    WHERE id = @id`);
  const END = `
    UPDATE invocations SET status = @status, cause = @cause,
      results = CASE WHEN function_id = '${BUILT_IN.functionId}' AND ${IS_RELEASED} THEN NULL
        ELSE @results END,
      params = CASE WHEN function_id = '${BUILT_IN.functionId}' THEN '{}' ELSE params END,
      steps = @steps, ended_lease_id = @leaseId, ended_at = @at, updated_at = @at
    WHERE id = @id AND status ${inStates(openStates(INVOCATION))}`;
  const endHeld = write<[object]>(END);
  // Core ends it, without a look at its row.
  const endOther = row<[object], ChangedInvocation>(`${END} RETURNING ${CHANGED_COLUMNS}`);
  const known = (id: string) => rowsBefore(tx).invocations.get(id);

  /** Undefined where the row has another state. Gives the new row. */
  function change(
    before: ChangedInvocation,
    from: readonly InvocationStatus[],
    values: Partial<ChangedInvocation>,
  ): ChangedInvocation | undefined {
    if (!from.includes(before.status)) return undefined;
    const row = { ...before, ...values };
    rowsBefore(tx).invocations.set(row.id, row);
    return row;
  }

  return {
    start({ id, at }) {
      const before = must(known(id), 'invocation of a held job');
      const times = { startedAt: at, updatedAt: at, expiresAt: at + before.timeoutMs };
      const from = statesBefore(INVOCATION, 'RUNNING');
      const row = change(before, from, { status: 'RUNNING', ...times });
      if (row) start(row);
      return found(row);
    },
    end(wanted) {
      const { id, status, results, cause, at } = wanted;
      const before = known(id);
      if (!before) return endOther(wanted);
      const values = { status, results, cause, endedAt: at, updatedAt: at };
      const row = change(before, openStates(INVOCATION), values);
      if (row) endHeld(wanted);
      return found(row);
    },
  };
}

export function invocationViews(tx: Tx): InReads<Omit<InvocationOps, 'acceptInvocation'>> {
  return {
    getInvocation: statements(tx).row(BY_ID),
    // Index invocations_by_version.
    listInvocations: pages(tx, {
      columns: LISTED_COLUMNS,
      from: `invocations WHERE version_id = @versionId AND project_id = @projectId
        AND (@status::TEXT IS NULL OR status = @status) AND EXISTS (
          SELECT 1 FROM versions JOIN functions ON functions.id = versions.function_id
          WHERE versions.id = @versionId AND functions.deleted_at IS NULL)`,
    }),
  };
}
