/**
 * Starts the invocations of schedules at their times. A run is accepted in the operation that sets
 * the next time, so a crash starts it once or leaves it due. A run that core refuses (a full queue,
 * a quota, params that the newest version refuses) is recorded as skipped and not retried.
 *   due --accepted--> started;  due --overlap, limit, params, missed--> skipped
 */
import type { Log } from '../../../proto/common/log.ts';
import { asFault, type Reason } from '../../../proto/rpc/errors.ts';
import { periodically } from '../../common/periodically.ts';
import { MISSED } from '../../store/operations/texts.ts';
import type { DueSchedule, ScheduleOutcome, SkipReason } from '../../store/types/invocations.ts';
import { askedInvocation, type InvocationDeps } from '../invocations.ts';

/** In milliseconds. Ours: times are whole minutes. */
const PERIOD_MS = 1_000;
/** Rows of one read. Ours: the next read has the turns of all projects again. */
const BATCH = 50;
/** Of a project in one read, as others wait for the slowest. Ours: a check takes 1 s at most. */
const TURN = 2;
/** In milliseconds. Ours: a time that passed longer ago was missed. */
const MISSED_MS = 60_000;
/** In milliseconds. Ours: after a failure, the next time is computed again. */
const REPLAN_MS = 60_000;
/** Ours, in characters: a schema's message may be long. */
const MESSAGE_MAX_CHARS = 500;

/** Other faults are `refused`. */
const REASONS: Partial<Record<Reason, SkipReason>> = {
  QUEUE_FULL: 'limit',
  QUOTA_EXCEEDED: 'limit',
  STORAGE_FULL: 'limit',
};
/** Of core itself: the time stays due, and the next period tries again. */
const PASSING: readonly Reason[] = ['CORE_UNAVAILABLE', 'DRAINING', 'OUTCOME_UNKNOWN'];

type Deps = InvocationDeps & { disk: { checkRoom(): void }; log: Log };

/** Without `scheduledFor` no run starts. */
type Plan = { nextRunAt: number; scheduledFor?: number; outcome?: ScheduleOutcome };

/** Disposal waits for runs that are being accepted. */
export function startSchedules(deps: Deps): AsyncDisposable {
  const run = async (signal: AbortSignal) => {
    if (deps.store.isLeader()) await runAllDue(deps, signal);
  };
  return periodically(PERIOD_MS, run, { log: deps.log, failure: 'running schedules failed' });
}

/** Projects run beside one another, and each has a turn in every read. */
async function runAllDue(deps: Deps, signal: AbortSignal): Promise<void> {
  for (;;) {
    const due = await deps.store.dueSchedules({ at: deps.now(), max: BATCH });
    const projects = [...Map.groupBy(due, ({ projectId }) => projectId).values()];
    const runs = await Promise.allSettled(
      projects.map(async (rows) => {
        for (const row of rows.slice(0, TURN)) if (!signal.aborted) await runOne(deps, row);
      }),
    );
    const failed = runs.find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
    const isLast = due.length < BATCH && projects.every(({ length }) => length <= TURN);
    if (isLast || signal.aborted) return;
  }
}

async function runOne(deps: Deps, row: DueSchedule): Promise<void> {
  const { store } = deps;
  let nextRunAt: number | null = null; // of a text or a zone that is not valid any more
  let scheduledFor = row.nextRunAt;
  try {
    const plan = await planOf(deps, row);
    nextRunAt = plan.nextRunAt;
    if (plan.scheduledFor === undefined) {
      const { outcome } = plan;
      return await store.skipScheduled({ seen: row, nextRunAt, ...(outcome && { outcome }) });
    }
    scheduledFor = plan.scheduledFor;
    deps.disk.checkRoom();
    const { functionId, projectId } = row;
    const params = JSON.parse(row.params);
    const asked = { functionId, versionId: undefined, params, sessionCreateParams: {} };
    const made = await askedInvocation(deps, asked, { projectId, call: { metadata: {} } });
    await store.startScheduled({ seen: row, nextRunAt, scheduledFor }, made);
  } catch (error) {
    const outcome = { ...refusalOf(error, { deps, row }), scheduledFor };
    // a failure that is not of its times does not end the schedule
    const isOfTimes = /^(?:cron|timeZone)$/.test(String(asFault(error).facts['field']));
    if (nextRunAt === null && !isOfTimes) {
      const again = { nextRunAt: deps.now() + REPLAN_MS, isPlanned: 0 } as const;
      return await store.skipScheduled({ seen: row, ...again, outcome });
    }
    await store.skipScheduled({ seen: row, nextRunAt, outcome });
  }
}

async function planOf({ validator, now }: Deps, row: DueSchedule): Promise<Plan> {
  const { projectId, nextRunAt: scheduledFor, isPlanned, catchUp } = row;
  const at = now();
  const isMissed = at - scheduledFor >= MISSED_MS;
  const after = isPlanned === 0 || isMissed ? at : scheduledFor;
  const nextRunAt = await validator.nextTime(projectId, row, after);
  if (isPlanned === 0) return { nextRunAt };
  if (!isMissed) return { nextRunAt, scheduledFor };
  if (catchUp === 'none') return { nextRunAt, outcome: { ...MISSED, scheduledFor } };
  const newest = await validator.lastTime(projectId, row, at);
  return { nextRunAt, scheduledFor: newest ?? scheduledFor };
}

/** Throws an error that is not the project's. */
function refusalOf(
  error: unknown,
  { deps, row }: { deps: Deps; row: DueSchedule },
): Omit<ScheduleOutcome, 'scheduledFor'> {
  const fault = asFault(error);
  if (PASSING.includes(fault.reason)) throw error;
  if (fault.reason === 'INTERNAL') {
    deps.log.error({ err: error, scheduleId: row.id }, 'starting a scheduled invocation failed');
  }
  const isOfParams = /^params\b/.test(String(fault.facts['field']));
  const reason = isOfParams ? 'invalidParams' : (REASONS[fault.reason] ?? 'refused');
  return { status: 'skipped', reason, message: fault.message.slice(0, MESSAGE_MAX_CHARS) };
}
