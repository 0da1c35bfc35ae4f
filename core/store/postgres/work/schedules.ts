/** Schedules in PostgreSQL. Their runs: core/store/operations/functions/schedules.ts. */
import type { ScheduleStatements } from '../../operations/functions/schedules.ts';
import { INVOCATION, openStates } from '../../operations/states.ts';
import type { ScheduleOps } from '../../types/invocations.ts';
import { inStates, pages, statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

const COLUMNS = `id, project_id AS "projectId", function_id AS "functionId", cron,
  time_zone AS "timeZone", params, overlap, catch_up AS "catchUp", enabled, version,
  next_run_at AS "nextRunAt", is_planned AS "isPlanned", last_run_at AS "lastRunAt",
  last_invocation_id AS "lastInvocationId", last_outcome AS "lastOutcome",
  created_at AS "createdAt", updated_at AS "updatedAt"`;

/**
 * Ours, in rows that a call examines: twenty projects at their limit. What was due first is
 * examined first.
 */
const EXAMINED_MAX = 2_000;

export function scheduleStatements(tx: Tx): ScheduleStatements {
  const { row, exists, number, returned, write } = statements(tx);
  return {
    hasFunction: exists(`
      SELECT 1 FROM functions
      WHERE id = @functionId AND project_id = @projectId AND deleted_at IS NULL`),
    // Index schedules_by_project.
    countOf: number('SELECT COUNT(*) FROM schedules WHERE project_id = ?'),
    insert: returned(`
      INSERT INTO schedules (id, project_id, function_id, cron, time_zone, params, overlap,
        catch_up, enabled, next_run_at, created_at, updated_at)
      VALUES (@id, @projectId, @functionId, @cron, @timeZone, @params, @overlap,
        @catchUp, @enabled, @nextRunAt, @at, @at)
      RETURNING ${COLUMNS}`),
    current: row(`
      SELECT ${COLUMNS} FROM schedules
      WHERE id = @id AND version = @version AND next_run_at = @nextRunAt FOR UPDATE`),
    isOpen: exists(`
      SELECT 1 FROM invocations WHERE id = ? AND status ${inStates(openStates(INVOCATION))}`),
    started: write(`
      UPDATE schedules SET next_run_at = @nextRunAt, is_planned = 1, last_run_at = @at,
        last_invocation_id = @invocationId, last_outcome = @outcome
      WHERE id = @id`),
    skipped: write(`
      UPDATE schedules SET next_run_at = @nextRunAt, is_planned = @isPlanned,
        last_outcome = COALESCE(@outcome, last_outcome)
      WHERE id = @id`),
    // Index schedules_by_function.
    removeOf: write('DELETE FROM schedules WHERE function_id = ?'),
  };
}

type Views = 'getSchedule' | 'listSchedules' | 'updateSchedule' | 'deleteSchedule' | 'dueSchedules';

export function scheduleViews(tx: Tx): InReads<Pick<ScheduleOps, Views>> {
  const { row, rows, changed } = statements(tx);
  const update = row<[object], ReturnType<ScheduleOps['updateSchedule']>>(`
    UPDATE schedules SET cron = @cron, time_zone = @timeZone, params = @params,
      overlap = @overlap, catch_up = @catchUp, enabled = @enabled, version = version + 1,
      next_run_at = CASE WHEN @isMoved THEN @nextRunAt ELSE next_run_at END,
      is_planned = CASE WHEN @isMoved THEN 1 ELSE is_planned END, updated_at = @at
    WHERE id = @id AND project_id = @projectId AND version = @version
    RETURNING ${COLUMNS}`);
  return {
    getSchedule: row(`
      SELECT ${COLUMNS} FROM schedules WHERE id = @id AND project_id = @projectId`),
    // Index schedules_by_function.
    listSchedules: pages(tx, {
      columns: COLUMNS,
      from: 'schedules WHERE function_id = @functionId AND project_id = @projectId',
    }),
    updateSchedule({ enabled, nextRunAt, ...change }) {
      const isMoved = nextRunAt !== undefined;
      return update({ ...change, enabled: enabled ? 1 : 0, nextRunAt, isMoved });
    },
    deleteSchedule: changed('DELETE FROM schedules WHERE id = @id AND project_id = @projectId'),
    // Index schedules_due, which has all that is sorted.
    dueSchedules: rows(`
      SELECT ${COLUMNS} FROM (
        SELECT id AS due_id, next_run_at AS due_at,
          ROW_NUMBER() OVER (PARTITION BY project_id ORDER BY next_run_at, id) AS turn
        FROM (
          SELECT id, project_id, next_run_at FROM schedules
          WHERE next_run_at <= @at ORDER BY next_run_at LIMIT ${EXAMINED_MAX}
        ) AS due
        ORDER BY turn, next_run_at, id LIMIT @max
      ) AS chosen JOIN schedules ON schedules.id = due_id
      ORDER BY turn, due_at, due_id`),
  };
}
