/**
 * Pacing of one endpoint: concurrent attempts, attempts per second, and a circuit breaker. Pure.
 * proto/spec/webhooks.md 9. The cap grows by one at each success and is halved when the receiver
 * reports overload. The breaker opens after consecutive failures, then allows one probe after each
 * wait; the first success closes it.
 */

/** Concurrent attempts. Isolation depends on it: one hung endpoint uses no more. */
export const CAP_MAX = 8;
const CAP_MIN = 1;
/** Consecutive failures that open the breaker. */
export const BREAKER_AFTER = 20;
/** In milliseconds: the wait before the first probe; each failed probe doubles it. */
const BREAKER_MIN_MS = 1_000;
const BREAKER_MAX_MS = 60_000;
/** In milliseconds: unused rate is saved for this long. */
export const BURST_MS = 1_000;

const OVERLOADED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export type Pace = {
  cap: number;
  /** In milliseconds; 0 while the breaker is closed. */
  breakerMs: number;
  /** Unix milliseconds. */
  notBefore: number;
};

type Attempt = { outcome: string; status: number; at: number; failuresInRow: number };

/** The pace after an ended attempt; `failuresInRow` includes it. */
export function paceAfter(before: Pace, attempt: Attempt): Pace {
  const { outcome, status, at, failuresInRow } = attempt;
  if (outcome === 'ok') {
    return { cap: Math.min(before.cap + 1, CAP_MAX), breakerMs: 0, notBefore: 0 };
  }
  const isOverloaded = outcome === 'timeout' || OVERLOADED_STATUSES.has(status);
  const cap = isOverloaded ? Math.max(CAP_MIN, Math.floor(before.cap / 2)) : before.cap;
  // Attempts in flight when the wait began are not probes and do not extend it.
  if (failuresInRow < BREAKER_AFTER || at < before.notBefore) return { ...before, cap };
  const doubled = Math.max(BREAKER_MIN_MS, before.breakerMs * 2);
  const breakerMs = Math.min(doubled, BREAKER_MAX_MS);
  return { cap, breakerMs, notBefore: at + breakerMs };
}

/** How many attempts may be in flight now. */
export function capOf({ cap, breakerMs }: Pick<Pace, 'cap' | 'breakerMs'>): number {
  return breakerMs > 0 ? 1 : cap;
}

/**
 * A token bucket in one number: `pacedUntil` is when the last claimed delivery would be sent at one
 * every 1/`ratePerS` seconds. It may be ahead by BURST_MS.
 */
export function tokensOf(pacedUntil: number, at: number, ratePerS: number): number {
  const ahead = Math.max(pacedUntil, at) - at;
  return Math.max(0, Math.floor(((BURST_MS - ahead) * ratePerS) / 1_000));
}

/** The bucket after `count` deliveries were claimed. */
export function pacedAfter(
  pacedUntil: number,
  at: number,
  taken: { count: number; ratePerS: number },
) {
  return Math.max(pacedUntil, at) + Math.ceil((taken.count * 1_000) / taken.ratePerS);
}
