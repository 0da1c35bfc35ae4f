/**
 * What projects used on each day, and their limits. The sums are written by triggers of the schema
 * in the operation that ends a session or an invocation.
 */
import { must } from '../../../../proto/common/must.ts';
import type {
  ConsoleDataOps,
  ConsoleLimitsRow,
  UsageDay,
  UsageOfFunction,
  UsageSums,
} from '../../types/console-data.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { deleteSome } from '../maintenance/some.ts';

/** Functions that one answer names. Source: console_data.proto. */
const FUNCTIONS_MAX = 100;
/** Rows of functions that one answer adds up, the newest days first. Ours: a few milliseconds. */
const ROWS_MAX = 20_000;

const SUMS = `sessions, minutes AS "browserMinutes", proxy_bytes AS "proxyBytes", runs,
  failed_runs AS "failedRuns"`;

type FunctionDay = UsageSums & { id: string };
type Names = 'consoleUsage' | 'consoleLimits' | 'purgeUsage';

export function consoleUsageOps(tx: Tx): InReads<Pick<ConsoleDataOps, Names>> {
  const { row, rows, changes } = plannedAnew(tx);
  // The primary keys.
  const days = rows<[object], UsageDay>(`
    SELECT day, ${SUMS} FROM usage_days
    WHERE project_id = @projectId AND day >= @fromDay ORDER BY day`);
  const functionDays = rows<[object], FunctionDay>(`
    SELECT function_id AS id, ${SUMS} FROM usage_function_days
    WHERE project_id = @projectId AND day >= @fromDay ORDER BY day DESC, function_id DESC
    LIMIT ${ROWS_MAX}`);
  const project = row<[string], Omit<ConsoleLimitsRow, 'invocations' | 'queue'>>(`
    SELECT name, created_at AS "createdAt", default_timeout AS "defaultTimeout",
      concurrency AS sessions
    FROM projects WHERE id = ?`);
  // The primary key.
  const queue = row<[string], Pick<ConsoleLimitsRow, 'invocations' | 'queue'>>(`
    SELECT cap AS invocations, ready_max AS queue FROM queues
    WHERE kind = 'invocation' AND project_id = ?`);
  const namesOf = rows<[string[]], { id: string; name: string }>(
    'SELECT id, name FROM functions WHERE id = ANY(?::TEXT[]) AND deleted_at IS NULL',
  );
  const purges = ['usage_days', 'usage_function_days'].map((table) => {
    return changes<[object]>(deleteSome(table, `${table} WHERE day < @day LIMIT @max`));
  });
  return {
    *consoleUsage(wanted) {
      const [ofProject, ofFunctions] = [days(wanted), functionDays(wanted)];
      const sums = addedUp(yield* ofFunctions);
      const most = [...sums].sort(([, a], [, b]) => b.browserMinutes - a.browserMinutes);
      const shown = most.slice(0, FUNCTIONS_MAX);
      const names = new Map(
        (yield* namesOf(shown.map(([id]) => id))).map(({ id, name }) => [id, name]),
      );
      const functions = shown.map(([id, own]): UsageOfFunction => {
        return { ...own, id, name: names.get(id) ?? null };
      });
      return { days: yield* ofProject, functions };
    },
    *consoleLimits(projectId) {
      const found = yield* project(projectId);
      return found && { ...found, ...must(yield* queue(projectId), 'the queue of a project') };
    },
    *purgeUsage({ day, max }) {
      let removed = 0;
      for (const purge of purges) removed += yield* purge({ day, max: max - removed });
      return removed;
    },
  };
}

function addedUp(all: readonly FunctionDay[]): Map<string, UsageSums> {
  const sums = new Map<string, UsageSums>();
  for (const { id, ...one } of all) {
    const known = sums.get(id);
    sums.set(id, known === undefined ? one : sumOf(known, one));
  }
  return sums;
}

function sumOf(a: UsageSums, b: UsageSums): UsageSums {
  return {
    sessions: a.sessions + b.sessions,
    browserMinutes: a.browserMinutes + b.browserMinutes,
    proxyBytes: a.proxyBytes + b.proxyBytes,
    runs: a.runs + b.runs,
    failedRuns: a.failedRuns + b.failedRuns,
  };
}
