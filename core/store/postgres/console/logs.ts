/** Parts of the log of an invocation or a build. */
import type { ConsoleLogLineRow, ConsoleOps } from '../../types/console.ts';
import { statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { SHOWN } from '../work/builds.ts';

export function consoleLogOps(tx: Tx): InReads<Pick<ConsoleOps, 'consoleLogLines'>> {
  const { rows, exists } = statements(tx);
  const isRun = exists<[object]>(`
    SELECT 1 FROM invocations JOIN functions
      ON functions.id = function_id AND functions.deleted_at IS NULL
    WHERE invocations.id = @id AND invocations.project_id = @projectId`);
  const isBuild = exists<[object]>(`
    SELECT 1 FROM builds WHERE id = @id AND project_id = @projectId AND ${SHOWN}`);
  // The primary key.
  const lines = rows<[object], ConsoleLogLineRow>(`
    SELECT number, level, message, at FROM log_lines
    WHERE owner_id = @id AND number >= @from ORDER BY number LIMIT @max`);
  return {
    *consoleLogLines(wanted) {
      const isOwn = (yield* isRun(wanted)) || (yield* isBuild(wanted));
      return isOwn ? yield* lines(wanted) : undefined;
    },
  };
}
