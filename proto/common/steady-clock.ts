/**
 * Timestamps that can be subtracted: the wall clock at the creation of the clock plus the elapsed
 * monotonic time. A change of the machine's clock affects neither durations nor timers that are
 * computed from it. Use one clock per unit of work: in a long-lived process it would drift from a
 * corrected wall clock.
 */

/** Unix milliseconds, whole. */
export function steadyClock(): () => number {
  const start = Date.now() - performance.now();
  return () => Math.floor(start + performance.now());
}
