/**
 * Schedules: the rules of what a user may choose, and their next times. run-due.ts starts their
 * invocations.
 *   (created) --> enabled <--> disabled;  either --deleted, or its function--> gone
 */
import type {
  Schedule,
  ScheduleServiceService,
  UpdateScheduleRequest,
} from '../../../proto/gen/tabern/v1/invocations.pb.ts';
import { Fault, invalidField, notFound } from '../../../proto/rpc/errors.ts';
import { dateOf, resourceOf } from '../../api/answers.ts';
import { oneOf, orNotFound } from '../../api/checks.ts';
import type { ProjectCaller, Service } from '../../api/interceptors.ts';
import { readOffsets } from '../../api/pagination.ts';
import { newId, pathId } from '../../common/ids.ts';
import type { ScheduleOutcome, ScheduleRow, ScheduleRules } from '../../store/types/invocations.ts';
import type { Store } from '../../store/types.ts';
import { normalisedCron } from '../../validation/cron.ts';
import type { Validator } from '../../validation/validator.ts';
import { findVersion, givenParams } from '../invocations.ts';
import { jsonOf, type ShowJson } from '../json-values.ts';

/** Ours, of a project: at most 6.4 MB of params, and 100 runs a minute. */
export const SCHEDULES_MAX = 100;
/** Ours: two users who change a schedule at once both succeed, one after the other. */
const RACES_MAX = 4;
const OVERLAP = { all: ['skip', 'allow'], usual: 'skip' } as const;
const CATCH_UP = { all: ['none', 'last'], usual: 'none' } as const;

type Options = {
  store: Store;
  validator: Pick<Validator, 'params' | 'nextTime'>;
  now: () => number;
};

export function scheduleService(
  options: Options,
): Service<typeof ScheduleServiceService, ProjectCaller> {
  const { store, now } = options;
  return {
    async createSchedule(request, { projectId, call }) {
      const functionId = pathId('functionId', request.functionId);
      const rules = rulesOf({
        cron: request.cron,
        timeZone: request.timeZone ?? 'UTC',
        params: JSON.stringify(givenParams(request)),
        overlap: request.overlap,
        catchUp: request.catchUp,
        enabled: request.enabled ?? true,
      });
      await checkParams(options, { functionId, projectId, params: rules.params });
      const at = now();
      const next = await nextRunAt(options, projectId, { rules, after: at });
      const own = { id: newId(), projectId, functionId };
      const made = await store.createSchedule(
        { ...own, ...rules, nextRunAt: next, at },
        SCHEDULES_MAX,
      );
      if (made === 'too-many') throw tooMany();
      return { schedule: toProto(orNotFound(made, 'Function', functionId), jsonOf(call)) };
    },

    async listSchedules(request, { projectId, call }) {
      const functionId = pathId('functionId', request.functionId);
      const [found, { rows, total }] = await Promise.all([
        store.getFunction({ id: functionId, projectId }),
        store.listSchedules({ functionId, projectId, ...readOffsets(request) }),
      ]);
      orNotFound(found, 'Function', functionId);
      const show = jsonOf(call);
      return { data: rows.map((row) => toProto(row, show)), total };
    },

    async getSchedule(request, { projectId, call }) {
      const id = pathId('id', request.id);
      const row = orNotFound(await store.getSchedule({ id, projectId }), 'Schedule', id);
      return { schedule: toProto(row, jsonOf(call)) };
    },

    async updateSchedule(request, { projectId, call }) {
      const row = await update(options, projectId, request);
      return { schedule: toProto(row, jsonOf(call)) };
    },

    async deleteSchedule(request, { projectId }) {
      const id = pathId('id', request.id);
      if (!(await store.deleteSchedule({ id, projectId }))) throw notFound('Schedule', id);
      return {};
    },
  };
}

/** Computed from the row as read: a row that changes meanwhile is read again. */
async function update(
  options: Options,
  projectId: string,
  request: UpdateScheduleRequest,
): Promise<ScheduleRow> {
  const { store, now } = options;
  const own = { id: pathId('id', request.id), projectId };
  const change = changeOf(request);
  for (let races = 0; races < RACES_MAX; races += 1) {
    const row = orNotFound(await store.getSchedule(own), 'Schedule', own.id);
    const { cron, timeZone, params, overlap, catchUp, version } = row;
    const enabled = row.enabled === 1;
    const rules = rulesOf({ cron, timeZone, params, overlap, catchUp, enabled, ...change });
    if (change.params !== undefined) await checkParams(options, { ...row, params: rules.params });
    const at = now();
    const isMoved = rules.enabled !== enabled || rules.cron !== cron || rules.timeZone !== timeZone;
    const next = isMoved && (await nextRunAt(options, projectId, { rules, after: at }));
    const moved = next === false ? {} : { nextRunAt: next };
    const changed = await store.updateSchedule({ ...own, ...rules, ...moved, version, at });
    if (changed) return changed;
  }
  throw new Fault('CORE_UNAVAILABLE', 'Too many changes at once.');
}

type Given = Omit<ScheduleRules, 'overlap' | 'catchUp'> & {
  overlap: string | undefined;
  catchUp: string | undefined;
};

/** The given fields. Throws INVALID_FIELD when there is none. */
function changeOf(request: UpdateScheduleRequest): Partial<Given> {
  const { cron, timeZone, overlap, catchUp, enabled, params, paramsJson } = request;
  const hasParams = params !== undefined || paramsJson !== undefined;
  const given = {
    cron,
    timeZone,
    overlap,
    catchUp,
    enabled,
    params: hasParams ? JSON.stringify(givenParams(request)) : undefined,
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  if (set.length > 0) return Object.fromEntries(set);
  throw invalidField('cron', 'or another field must be given.');
}

function rulesOf({ cron, overlap, catchUp, ...rest }: Given): ScheduleRules {
  return {
    ...rest,
    cron: normalisedCron(cron),
    overlap: oneOf('overlap', overlap, OVERLAP),
    catchUp: oneOf('catchUp', catchUp, CATCH_UP),
  };
}

/** By the newest version; an invocation is checked again when it starts. */
async function checkParams(
  { store, validator }: Options,
  wanted: { functionId: string; projectId: string; params: string },
): Promise<void> {
  const version = await findVersion(store, { ...wanted, versionId: undefined });
  await validator.params(version, JSON.parse(wanted.params));
}

/** Null while it is disabled. The cron text is checked also then. */
async function nextRunAt(
  { validator }: Options,
  projectId: string,
  { rules, after }: { rules: ScheduleRules; after: number },
): Promise<number | null> {
  const next = await validator.nextTime(projectId, rules, after);
  return rules.enabled ? next : null;
}

function tooMany(): Fault {
  const message = `A project has at most ${SCHEDULES_MAX} schedules.`;
  return new Fault('TOO_MANY_SCHEDULES', message, { max: SCHEDULES_MAX });
}

function toProto(row: ScheduleRow, show: ShowJson): Schedule {
  const params = show(row.params);
  return {
    ...resourceOf(row),
    functionId: row.functionId,
    cron: row.cron,
    timeZone: row.timeZone,
    params: params.value,
    paramsJson: params.text,
    overlap: row.overlap,
    catchUp: row.catchUp,
    enabled: row.enabled === 1,
    nextRunAt: dateOf(row.isPlanned === 1 ? row.nextRunAt : null),
    lastRunAt: dateOf(row.lastRunAt),
    lastInvocationId: row.lastInvocationId ?? undefined,
    lastOutcome: row.lastOutcome === null ? undefined : outcomeToProto(JSON.parse(row.lastOutcome)),
  };
}

function outcomeToProto(outcome: ScheduleOutcome): NonNullable<Schedule['lastOutcome']> {
  const { status, reason, message, scheduledFor } = outcome;
  return { status, reason, message, scheduledFor: new Date(scheduledFor) };
}
