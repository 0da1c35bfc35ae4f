/** OperatorConsoleService: what the operator pages of the console show of an installation. */
import type { Finding } from '../../proto/common/diagnostics.ts';
import type { HealthCheck } from '../../proto/gen/tabern/v1/health.pb.ts';
import type {
  OperatorConsoleServiceService,
  OperatorSession,
} from '../../proto/gen/tabern/v1/operator_console.pb.ts';
import { dateOf } from '../api/answers.ts';
import { inRange } from '../api/checks.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { readCursor } from '../console/cursor.ts';
import { cursorAfter } from '../console/filters.ts';
import type { Notices } from '../maintenance/notices.ts';
import type { Readiness } from '../maintenance/readiness.ts';
import type { OperatorSessionRow } from '../store/types/operator.ts';
import type { Store } from '../store/types.ts';

const LIMIT_DEFAULT = 50;
const LIMITS = { min: 1, max: 200 };
/** Ours: an installation has few projects with work at the same time. */
const QUEUES_MAX = 1_000;

type OperatorDeps = {
  store: Pick<Store, 'allSessions' | 'busyQueues' | 'heldWork'>;
  readiness: Pick<Readiness, 'list'>;
  notices: Pick<Notices, 'list'>;
  health: (caller: MachineCaller) => Promise<HealthCheck[]>;
  diagnose: () => Promise<Finding[]>;
  now: () => number;
};

export function operatorConsoleService(
  deps: OperatorDeps,
): Service<typeof OperatorConsoleServiceService, MachineCaller> {
  const { store, readiness, notices, health, diagnose, now } = deps;
  return {
    async listAllSessions({ isOpen = false, limit = LIMIT_DEFAULT, cursor }) {
      const owner = { projectId: '', list: isOpen ? 'open sessions' : 'all sessions' };
      const before = cursor === undefined ? undefined : readCursor(owner, cursor);
      const page = { isOpen, before, limit: inRange('limit', limit, LIMITS) };
      const found = await store.allSessions(page);
      return { sessions: found.rows.map(toProto), nextCursor: cursorAfter(owner, found) };
    },

    async listRunners() {
      const held = new Map(
        (await store.heldWork()).map(({ runnerId, running }) => [runnerId, running]),
      );
      const runners = readiness.list().map(({ runnerId: id, silentMs, isPresent, ...report }) => ({
        id,
        seenAt: new Date(now() - silentMs),
        isPresent,
        isBrowserFailing: report.browserFailed,
        isDraining: report.isDraining,
        facts: report.facts,
        browser: report.browser,
        running: held.get(id) ?? 0,
      }));
      return { runners: runners.sort((a, b) => (a.id < b.id ? -1 : 1)) };
    },

    async listQueues() {
      return { queues: await store.busyQueues(QUEUES_MAX) };
    },

    async listNotices() {
      return {
        notices: notices.list().map(({ at, ...notice }) => ({ ...notice, loggedAt: new Date(at) })),
      };
    },

    async getDiagnosis(_, caller) {
      const [checks, findings] = await Promise.all([health(caller), diagnose()]);
      return { findings: [...checks.map(findingOf), ...findings] };
    },
  };
}

/** Of the state of the running service. */
function findingOf({ name, fault, warning }: HealthCheck): Finding {
  const check = `service: ${name}`;
  if (fault !== '') return { check, level: 'fail', says: fault };
  return warning === ''
    ? { check, level: 'ok', says: 'ready' }
    : { check, level: 'warn', says: warning };
}

function toProto({
  createdAt,
  startedAt,
  endedAt,
  endReason,
  ...row
}: OperatorSessionRow): OperatorSession {
  const times = { startedAt: dateOf(startedAt), endedAt: dateOf(endedAt) };
  return { ...row, ...times, createdAt: new Date(createdAt), endReason: endReason || undefined };
}
