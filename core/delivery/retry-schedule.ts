/**
 * When a failed delivery is retried. Pure: clock and jitter are arguments. proto/spec/webhooks.md
 * 6: at once, then 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h after the previous failure: 8 attempts
 * over 27 h 35 min 5 s.
 */

/** In milliseconds; the wait after failures 1 to 7. After failure 8 the delivery is exhausted. */
export const DELAYS_MS: readonly number[] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map(
  (seconds) => seconds * 1_000,
);
/** In milliseconds. The minimum delay for an overloaded receiver. */
const OVERLOADED_MIN_MS = 60_000;
/** Delays are spread over this share, so that an outage does not end in a burst. */
export const JITTER_MIN = 0.8;
export const JITTER_MAX = 1.2;

const OVERLOADED_STATUSES: ReadonlySet<number> = new Set([429, 502, 504]);

/** The failure of an attempt, as far as the schedule needs it. */
export type Failure = {
  outcome: string;
  /** The HTTP code; 0 when there was none. */
  status: number;
  retryAfterS: number | null;
};

/**
 * Delay in milliseconds; null when the delivery is exhausted. `tries` counts the failed attempts,
 * this one included; `jitter` is between JITTER_MIN and JITTER_MAX.
 */
export function delayMs(tries: number, failure: Failure, jitter: number): number | null {
  const base = DELAYS_MS[tries - 1];
  if (base === undefined) return null;
  const isOverloaded = failure.outcome === 'timeout' || OVERLOADED_STATUSES.has(failure.status);
  const plain = isOverloaded ? Math.max(base, OVERLOADED_MIN_MS) : base;
  const wait = failure.retryAfterS === null ? plain : asked(failure.retryAfterS, base, tries);
  return Math.round(wait * jitter);
}

/** Maps a random number from [0, 1) to the jitter's range. */
export function jitterOf(random: number): number {
  return JITTER_MIN + random * (JITTER_MAX - JITTER_MIN);
}

/**
 * The delay that the receiver requested, at least the schedule's own delay, at most the next delay.
 */
function asked(retryAfterS: number, base: number, tries: number): number {
  const next = DELAYS_MS[tries] ?? base;
  return Math.min(Math.max(retryAfterS * 1_000, base), next);
}
