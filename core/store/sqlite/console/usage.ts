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
import { queries } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';

/** Functions that one answer names. Source: console_data.proto. */
const FUNCTIONS_MAX = 100;
/** Rows of functions that one answer adds up, the newest days first. Ours: a few milliseconds. */
const ROWS_MAX = 20_000;

const SUMS = `sessions, minutes AS browserMinutes, proxy_bytes AS proxyBytes, runs,
  failed_runs AS failedRuns`;

type FunctionDay = UsageSums & { id: string };
type Names = 'consoleUsage' | 'consoleLimits' | 'purgeUsage';

export function consoleUsageOps(tx: Tx): Pick<ConsoleDataOps, Names> {
  const { row, rows, value, changes } = queries(tx);
  // The primary keys.
  const days = rows<[object], UsageDay>(`
    SELECT day, ${SUMS} FROM usage_days
    WHERE project_id = @projectId AND day >= @fromDay ORDER BY day`);
  const functionDays = rows<[object], FunctionDay>(`
    SELECT function_id AS id, ${SUMS} FROM usage_function_days
    WHERE project_id = @projectId AND day >= @fromDay ORDER BY day DESC LIMIT ${ROWS_MAX}`);
  const project = row<[string], Omit<ConsoleLimitsRow, 'invocations' | 'queue'>>(`
    SELECT name, created_at AS createdAt, default_timeout AS defaultTimeout,
      concurrency AS sessions
    FROM projects WHERE id = ?`);
  // The primary key.
  const queue = row<[string], Pick<ConsoleLimitsRow, 'invocations' | 'queue'>>(`
    SELECT cap AS invocations, ready_max AS queue FROM queues
    WHERE kind = 'invocation' AND project_id = ?`);
  const nameOf = value<[string], string>(
    'SELECT name FROM functions WHERE id = ? AND deleted_at IS NULL',
  );
  const purges = ['usage_days', 'usage_function_days'].map((table) => {
    const key = table === 'usage_days' ? 'project_id, day' : 'project_id, day, function_id';
    return changes<[object]>(`
      DELETE FROM ${table} WHERE (${key}) IN (
        SELECT ${key} FROM ${table} INDEXED BY ${table}_by_age WHERE day < @day LIMIT @max)`);
  });
  return {
    consoleUsage(wanted) {
      const sums = addedUp(functionDays(wanted));
      const most = [...sums].sort(([, a], [, b]) => b.browserMinutes - a.browserMinutes);
      const functions = most.slice(0, FUNCTIONS_MAX).map(([id, own]): UsageOfFunction => {
        return { ...own, id, name: nameOf(id) ?? null };
      });
      return { days: days(wanted), functions };
    },
    consoleLimits(projectId) {
      const found = project(projectId);
      return found && { ...found, ...must(queue(projectId), 'the queue of a project') };
    },
    purgeUsage: ({ day, max }) =>
      purges.reduce((removed, purge) => removed + purge({ day, max: max - removed }), 0),
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
