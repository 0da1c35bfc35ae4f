/**
 * Rate limits per project: a number of actions per period, counted from the first. In memory:
 * limits of minutes need not survive a restart.
 */
import { Fault } from '../../proto/rpc/errors.ts';

export type Rate = {
  /** Counts one action. Throws RATE_LIMIT beyond the limit. */
  take(projectId: string): void;
};

type Options = { limit: number; periodMs: number; what: string; now: () => number };

export function openRate({ limit, periodMs, what, now }: Options): Rate {
  const periods = new Map<string, { until: number; count: number }>();
  return {
    take(projectId) {
      const at = now();
      const open = periods.get(projectId);
      // a clock that was set back ends the period, too
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

/** Removes ended periods, so that inactive projects use no memory. */
function forget(periods: Map<string, { until: number }>, at: number): void {
  for (const [projectId, { until }] of periods) if (until <= at) periods.delete(projectId);
}
