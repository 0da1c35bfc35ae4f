/** The state of a project, and its counts over time. */
import type {
  ConsoleServiceGetOverviewResponse,
  ConsoleServiceService,
  CountByRequest,
  CountByResponse,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { invalidField } from '../../proto/rpc/errors.ts';
import { dateOf } from '../api/answers.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { ConsoleCountsWanted, OverviewRow, Position } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';
import { optionalId, rangeOf } from './filters.ts';
import { serviceState } from './service-state.ts';
import { causeOf } from './work.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;
type Options = Parameters<typeof serviceState>[0] & {
  store: Pick<Store, 'consoleOverview' | 'consoleCounts'>;
  now: () => number;
};

const DAY_MS = 86_400_000;
/** In seconds. Source: console.proto. */
const BUCKET = { min: 1, max: 604_800, unit: ' seconds' };
/** Source: console.proto. */
const BUCKETS_MAX = 1_000;
/** Rows that one call counts. Source: console.proto. */
const COUNTED_MAX = 50_000;
/** Operations of the store for one call: an event may have no deliveries. */
const STEPS_MAX = 100;
/** Buckets with their groups. Ours: a chart has fewer. */
const COUNTS_MAX = 10_000;

/** What may be grouped by what. Source: console.proto. */
const GROUPS: Readonly<Record<ConsoleCountsWanted['kind'], readonly string[]>> = {
  sessions: ['status', 'reason'],
  invocations: ['status', 'function'],
  builds: ['status'],
  deliveries: ['status', 'webhook'],
};

export function consoleOverview(options: Options): Pick<Handlers, 'getOverview' | 'countBy'> {
  const { store, now } = options;
  return {
    async getOverview(_, { projectId }) {
      const found = await store.consoleOverview({ projectId, since: now() - DAY_MS });
      const overview = toProto(projectId, orNotFound(found, 'Project', projectId));
      return { ...overview, service: serviceState(options) };
    },

    async countBy(request, { projectId, call }) {
      const wanted = countsOf(request, projectId, now());
      const counts = new Map<string, CountByResponse['buckets'][number]>();
      let [counted, before]: [number, Position | undefined] = [0, undefined];
      for (let step = 0; step < STEPS_MAX && counted < COUNTED_MAX; step += 1) {
        const found = await store.consoleCounts({ ...wanted, before });
        for (const { bucket, key, count } of found.counts) {
          const name = `${bucket} ${key}`;
          const known = counts.get(name)?.count ?? 0;
          const at = new Date(bucket * wanted.bucketMs);
          counts.set(name, { at, key, count: known + count });
          counted += count;
        }
        before = found.next;
        if (counts.size > COUNTS_MAX)
          throw invalidField('bucket', 'is too short for so many groups.');
        if (before === undefined || call.signal.aborted) break;
      }
      return {
        buckets: [...counts.values()].sort((a, b) => timeOf(a) - timeOf(b)),
        completeFrom: new Date(completeFrom(wanted, before)),
      };
    },
  };
}

/** A bucket that was counted in part is not whole. */
function completeFrom(
  { from, bucketMs }: ConsoleCountsWanted,
  before: Position | undefined,
): number {
  return before === undefined ? from : Math.ceil(before.at / bucketMs + 1e-9) * bucketMs;
}

/** Throws INVALID_FIELD. */
function countsOf(request: CountByRequest, projectId: string, at: number): ConsoleCountsWanted {
  const { bucket, group } = request;
  const kind = (request.kind ?? 'ALL').toLowerCase() as ConsoleCountsWanted['kind'];
  const groups = GROUPS[kind];
  if (groups === undefined) {
    throw invalidField('kind', `must be one of ${Object.keys(GROUPS).join(', ').toUpperCase()}.`);
  }
  if (group !== undefined && !groups.includes(group)) {
    throw invalidField('group', `must be one of ${groups.join(', ')}.`);
  }
  if (request.functionId !== undefined && kind !== 'invocations') {
    throw invalidField('functionId', 'is for INVOCATIONS only.');
  }
  inRange('bucket', bucket, BUCKET);
  if (request.from === undefined) throw invalidField('from', 'is required.');
  const { from, to } = rangeOf(request.from, request.to ?? new Date(at + 1));
  const bucketMs = bucket * 1_000;
  if ((to - from) / bucketMs > BUCKETS_MAX) {
    throw invalidField('bucket', `must divide the time into ${BUCKETS_MAX} parts at most.`);
  }
  const functionId = optionalId('functionId', request.functionId);
  return { projectId, kind, group, functionId, bucketMs, from, to };
}

function timeOf({ at }: { at: Date | undefined }): number {
  return at?.getTime() ?? 0;
}

function toProto(
  projectId: string,
  { name, failingFunctions, failingWebhooks, ...same }: OverviewRow,
): Omit<ConsoleServiceGetOverviewResponse, 'service'> {
  return {
    ...same,
    projectId,
    projectName: name,
    failingFunctions: failingFunctions.map(({ cause, failedAt, ...one }) => {
      const { causeMessage } = causeOf(cause);
      return { ...one, failedAt: new Date(failedAt), causeMessage };
    }),
    failingWebhooks: failingWebhooks.map(({ status, failingSince, disabledReason, ...one }) => ({
      ...one,
      status: status === 'enabled' ? 'ENABLED' : 'DISABLED',
      failingSince: dateOf(failingSince),
      disabledReason: disabledReason ?? undefined,
    })),
  };
}
