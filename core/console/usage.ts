/** What the project used, by day and by function. */
import type { ConsoleServiceService } from '../../proto/gen/tabern/v1/console.pb.ts';
import { inRange } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { UsageDay } from '../store/types/console-data.ts';
import type { Store } from '../store/types.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;
type Options = { store: Pick<Store, 'consoleUsage' | 'projectUsage'>; now: () => number };

const DAY_MS = 86_400_000;
const DAYS_DEFAULT = 30;
const DAYS = { min: 1, max: 90 };
const NONE = { sessions: 0, browserMinutes: 0, proxyBytes: 0, runs: 0, failedRuns: 0 };

export function consoleUsage({ store, now }: Options): Pick<Handlers, 'getUsage'> {
  return {
    async getUsage({ days: count = DAYS_DEFAULT }, { projectId }) {
      inRange('days', count, DAYS);
      const at = now();
      const fromDay = Math.floor(at / DAY_MS) - count + 1;
      const [used, all] = await Promise.all([
        store.consoleUsage({ projectId, fromDay }),
        store.projectUsage({ id: projectId, at }),
      ]);
      const days = Array.from({ length: count }, (_, index) => dayOf(used.days, fromDay + index));
      const functions = used.functions.map(({ id, name, ...sums }) => {
        return { id, name: name ?? undefined, sums };
      });
      return { ...all, days, functions };
    },
  };
}

function dayOf(days: readonly UsageDay[], day: number) {
  const { day: _, ...sums } = days.find((one) => one.day === day) ?? { day, ...NONE };
  return { at: new Date(day * DAY_MS), sums };
}
