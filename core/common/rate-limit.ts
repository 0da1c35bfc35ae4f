/**
 * How often a project may do something: so many times a period, counted from its first. In memory:
 * a limit of minutes need not outlive a restart.
 */
import { Fault } from '../../proto/rpc/errors.ts';

export type Rate = {
  /** Counts one more. Throws RATE_LIMIT when there were enough. */
  take(projectId: string): void;
};

type Options = { limit: number; periodMs: number; what: string; now: () => number };

export function openRate({ limit, periodMs, what, now }: Options): Rate {
  const periods = new Map<string, { until: number; count: number }>();
  return {
    take(projectId) {
      const at = now();
      const open = periods.get(projectId);
      // a clock that was set back ends it, too
      const isOpen = open && at < open.until && at >= open.until - periodMs;
      const period = isOpen ? open : { until: at + periodMs, count: 0 };
      if (period !== open) forget(periods, at);
      periods.set(projectId, period);
      if (period.count >= limit) {
        const retryAfterS = Math.max(1, Math.ceil((period.until - at) / 1_000));
        throw new Fault('RATE_LIMIT', `Too many ${what}: ${limit} in ${periodMs / 1_000} s.`, {
          limit,
          current: limit,
          retryAfterS,
        });
      }
      period.count += 1;
    },
  };
}

/** What is over, so that projects of the past take no place. */
function forget(periods: Map<string, { until: number }>, at: number): void {
  for (const [projectId, { until }] of periods) if (until <= at) periods.delete(projectId);
}
