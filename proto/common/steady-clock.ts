/**
 * Times that can be subtracted: the wall clock of the moment in which the clock is made, and from
 * there on the time that passes. A change of the machine's clock moves neither a duration nor a
 * timer that is computed from it. One clock for one piece of work: a long-lived process would
 * otherwise drift from a wall clock that was corrected.
 */

/** Unix milliseconds, whole. */
export function steadyClock(): () => number {
  const start = Date.now() - performance.now();
  return () => Math.floor(start + performance.now());
}
