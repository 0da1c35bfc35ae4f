/** Invocations as the console lists them. A long result is stored apart from its row. */
import type { Steps } from '../../operations/steps.ts';
import type {
  ConsoleInvocationRow,
  ConsoleInvocationsWanted,
  ConsoleOps,
  Listed,
} from '../../types/console.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { ENTRIES_MAX, ROWS_MAX, type Walk, walks } from './walk.ts';

const COLUMNS = `found.id AS id, found.status AS status, found.created_at AS "createdAt",
  found.started_at AS "startedAt", found.ended_at AS "endedAt", found.expires_at AS "expiresAt",
  found.function_id AS "functionId", functions.name AS "functionName",
  found.version_id AS "versionId", found.session_id AS "sessionId",
  CASE found.status WHEN 'FAILED' THEN found.cause END AS cause,
  found.schedule_id AS "scheduleId", found.scheduled_for AS "scheduledFor"`;

/** Without those of deleted functions and of the service's own. */
const JOINS = `
  JOIN functions ON functions.id = found.function_id AND functions.deleted_at IS NULL
    AND functions.project_id = found.project_id`;

const FILTER = `
  (@status::TEXT IS NULL OR found.status = @status)
  AND (@functionId::TEXT IS NULL OR found.function_id = @functionId)
  AND (@text::TEXT IS NULL OR strpos(found.id, @text) > 0 OR strpos(lower(functions.name), @text) >
  0)`;

const BY_TIME = {
  columns: COLUMNS,
  joins: JOINS,
  filter: FILTER,
  table: 'invocations AS found',
  where: 'found.project_id = @projectId',
  at: 'found.created_at',
  id: 'found.id',
} satisfies Walk;
const FAILED = {
  ...BY_TIME,
  table: 'invocations AS found',
  where: `found.project_id = @projectId AND found.status = 'FAILED'`,
} satisfies Walk;
const OF_FUNCTION = {
  ...BY_TIME,
  table: 'invocations AS found',
  where: 'found.function_id = @functionId',
} satisfies Walk;

type Names = 'consoleInvocations' | 'consoleInvocation' | 'consoleInvocationSteps';

export function consoleInvocationOps(tx: Tx): InReads<Pick<ConsoleOps, Names>> {
  const { row, exists } = statements(tx);
  type Pages = (
    wanted: ConsoleInvocationsWanted,
    max: number,
  ) => Steps<Listed<ConsoleInvocationRow>>;
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
    *consoleInvocations(wanted) {
      const { projectId, status, text, functionId } = wanted;
      const max = text === undefined ? ENTRIES_MAX : ROWS_MAX;
      if (functionId !== undefined) {
        const isOfProject = yield* isOwn({ functionId, projectId });
        return isOfProject ? yield* ofFunction(wanted, max) : { rows: [] };
      }
      return yield* (status === 'FAILED' ? failed : all)(wanted, max);
    },
  };
}
