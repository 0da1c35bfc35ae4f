/**
 * Invocations as the console lists them. `found` walks the index of the filter; `shown` is the same
 * row by invocations_by_time, from which SQLite reads the times: in the row they are behind the
 * result, and reading them would read all of its 6 MiB. Of the row itself it reads what is before
 * the result, and the cause of a failure, which has none.
 */
import type {
  ConsoleInvocationRow,
  ConsoleInvocationsWanted,
  ConsoleOps,
  Listed,
} from '../../types/console.ts';
import { queries } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';
import { ENTRIES_MAX, ROWS_MAX, type Walk, walks } from './walk.ts';

const COLUMNS = `shown.id AS id, shown.status AS status, shown.created_at AS createdAt,
  shown.started_at AS startedAt, shown.ended_at AS endedAt, shown.expires_at AS expiresAt,
  shown.function_id AS functionId, functions.name AS functionName,
  shown.version_id AS versionId, shown.session_id AS sessionId,
  CASE shown.status WHEN 'FAILED' THEN shown.cause END AS cause,
  scheduled.schedule_id AS scheduleId, scheduled.scheduled_for AS scheduledFor`;

/**
 * Without those of deleted functions and of the service's own. CROSS JOIN keeps the order of the
 * tables.
 */
const JOINS = `
  CROSS JOIN functions ON functions.id = found.function_id AND functions.deleted_at IS NULL
    AND functions.project_id = found.project_id
  CROSS JOIN invocations AS shown INDEXED BY invocations_by_time
    ON shown.project_id = found.project_id AND shown.created_at = found.created_at
    AND shown.id = found.id
  LEFT JOIN invocations AS scheduled INDEXED BY invocations_scheduled
    ON scheduled.id = found.id AND scheduled.schedule_id IS NOT NULL`;

const FILTER = `
  (@status IS NULL OR found.status = @status)
  AND (@functionId IS NULL OR found.function_id = @functionId)
  AND (@text IS NULL OR instr(found.id, @text) OR instr(lower(functions.name), @text))`;

const BY_TIME = {
  columns: COLUMNS,
  joins: JOINS,
  filter: FILTER,
  table: 'invocations AS found INDEXED BY invocations_by_time',
  where: 'found.project_id = @projectId',
  at: 'found.created_at',
  id: 'found.id',
} satisfies Walk;
const FAILED = {
  ...BY_TIME,
  table: 'invocations AS found INDEXED BY invocations_failed',
  where: `found.project_id = @projectId AND found.status = 'FAILED'`,
} satisfies Walk;
const OF_FUNCTION = {
  ...BY_TIME,
  table: 'invocations AS found INDEXED BY invocations_by_function',
  where: 'found.function_id = @functionId',
  joins: JOINS.replace('shown.project_id = found.project_id', 'shown.project_id = @projectId'),
} satisfies Walk;

type Names = 'consoleInvocations' | 'consoleInvocation' | 'consoleInvocationSteps';

export function consoleInvocationOps(tx: Tx): Pick<ConsoleOps, Names> {
  const { row, exists } = queries(tx);
  type Pages = (wanted: ConsoleInvocationsWanted, max: number) => Listed<ConsoleInvocationRow>;
  const all: Pages = walks(tx, BY_TIME);
  const failed: Pages = walks(tx, FAILED);
  const ofFunction: Pages = walks(tx, OF_FUNCTION);
  // The places in another project's list are not for this one.
  const isOwn = exists<[object]>(
    'SELECT 1 FROM functions WHERE id = @functionId AND project_id = @projectId',
  );
  const found = `FROM invocations AS found ${JOINS}
    WHERE found.id = @id AND found.project_id = @projectId`;
  return {
    consoleInvocation: row<[object], ConsoleInvocationRow>(`SELECT ${COLUMNS} ${found}`),
    consoleInvocationSteps: row<[object], { steps: string | null }>(`SELECT found.steps ${found}`),
    consoleInvocations(wanted) {
      const { projectId, status, text, functionId } = wanted;
      const max = text === undefined ? ENTRIES_MAX : ROWS_MAX;
      if (functionId !== undefined) {
        return isOwn({ functionId, projectId }) ? ofFunction(wanted, max) : { rows: [] };
      }
      return (status === 'FAILED' ? failed : all)(wanted, max);
    },
  };
}
