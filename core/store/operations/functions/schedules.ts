/**
 * Schedules: their limit, and their runs. A run is accepted in the operation that sets the next
 * time: a crash starts it once or leaves the time due.
 */
import type {
  DueSchedule,
  InvocationOps,
  ScheduleOps,
  ScheduleOutcome,
  ScheduleRow,
  SeenSchedule,
} from '../../types/invocations.ts';
import type { InSteps, Read, Steps, Transaction } from '../steps.ts';
import { OVERLAPPED } from '../texts.ts';

type Created = Parameters<ScheduleOps['createSchedule']>[0];

export type ScheduleStatements = {
  hasFunction(wanted: { functionId: string; projectId: string }): Read<boolean>;
  countOf(projectId: string): Read<number>;
  insert(schedule: Omit<Created, 'enabled'> & { enabled: 0 | 1 }): Read<ScheduleRow>;
  /** Undefined when it has changed since it was read. */
  current(seen: SeenSchedule): Read<DueSchedule | undefined>;
  isOpen(invocationId: string): Read<boolean>;
  started(run: {
    id: string;
    nextRunAt: number | null;
    invocationId: string;
    outcome: string;
    at: number;
  }): void;
  /** A null outcome leaves the last one. */
  skipped(run: {
    id: string;
    nextRunAt: number | null;
    isPlanned: 0 | 1;
    outcome: string | null;
  }): void;
  removeOf(functionId: string): void;
};

type Names = 'createSchedule' | 'startScheduled' | 'skipScheduled';
type Accept = InSteps<Pick<InvocationOps, 'acceptInvocation'>>['acceptInvocation'];

export function scheduleOperations(
  { schedules, accept }: { schedules: ScheduleStatements; accept: Accept },
  { crashPoint }: Transaction,
): InSteps<Pick<ScheduleOps, Names>> {
  return {
    *createSchedule(schedule, max) {
      if (!(yield* schedules.hasFunction(schedule))) return undefined;
      if ((yield* schedules.countOf(schedule.projectId)) >= max) return 'too-many';
      return yield* schedules.insert({ ...schedule, enabled: schedule.enabled ? 1 : 0 });
    },

    *startScheduled({ seen, nextRunAt, scheduledFor }, invocation) {
      const row = yield* schedules.current(seen);
      if (!row) return 'changed';
      const { id } = row;
      if (row.overlap === 'skip' && (yield* isRunning(schedules, row))) {
        const outcome = { ...OVERLAPPED, scheduledFor };
        schedules.skipped({ id, nextRunAt, isPlanned: 1, outcome: textOf(outcome) });
        return 'overlap';
      }
      yield* accept({ ...invocation, trigger: { scheduleId: id, scheduledFor } });
      const outcome = textOf({ status: 'started', scheduledFor });
      const { at } = invocation;
      schedules.started({ id, nextRunAt, invocationId: invocation.id, outcome, at });
      crashPoint('run-schedule');
      return 'started';
    },

    *skipScheduled({ seen, nextRunAt, isPlanned = 1, outcome }) {
      if (!(yield* schedules.current(seen))) return;
      const text = outcome === undefined ? null : textOf(outcome);
      schedules.skipped({ id: seen.id, nextRunAt, isPlanned, outcome: text });
    },
  };
}

function* isRunning(
  schedules: ScheduleStatements,
  { lastInvocationId }: Pick<ScheduleRow, 'lastInvocationId'>,
): Steps<boolean> {
  return lastInvocationId !== null && (yield* schedules.isOpen(lastInvocationId));
}

function textOf(outcome: ScheduleOutcome): string {
  return JSON.stringify(outcome);
}
