/**
 * When a failing endpoint is disabled: after five days without a success, proto/spec/webhooks.md 7.
 * Pure. The first attempt after a silence does not disable, so a single failure cannot disable an
 * endpoint without traffic.
 */

const HOUR_MS = 3_600_000;
/** An attempt this long after the previous one does not disable alone. */
const SILENCE_MS = 24 * HOUR_MS;
/** After this long without an attempt the failure streak is reset. */
const FORGET_MS = 7 * 24 * HOUR_MS;

/** The failure streak in an endpoint's row. Times in Unix milliseconds. */
export type FailureStreak = {
  firstFailureAt: number | null;
  lastAttemptAt: number | null;
  consecutiveFailures: number;
};

/** Set by the operator (proto/common/settings/table.ts). */
export type Rule = {
  disableAfterMs: number;
  /** False: the first attempt after a silence may disable too. */
  silence: boolean;
};

/**
 * The streak after an attempt that ended at `at`, and whether it disables the endpoint. Not for
 * interrupted attempts and failures of this service, which do not count.
 */
export function afterAttempt(
  before: FailureStreak,
  attempt: { ok: boolean; at: number },
  rule: Rule,
): { streak: FailureStreak; disables: boolean } {
  const { at, ok } = attempt;
  // Attempts run concurrently and may be reported out of order: time does not go back.
  const lastAttemptAt = Math.max(before.lastAttemptAt ?? at, at);
  if (ok) {
    const streak = { firstFailureAt: null, lastAttemptAt, consecutiveFailures: 0 };
    return { streak, disables: false };
  }
  const silenceMs = before.lastAttemptAt === null ? 0 : at - before.lastAttemptAt;
  const isForgotten = before.firstFailureAt === null || silenceMs > FORGET_MS;
  const firstFailureAt = isForgotten ? at : (before.firstFailureAt ?? at);
  const isSilent = rule.silence && silenceMs > SILENCE_MS;
  const disables = at - firstFailureAt >= rule.disableAfterMs && !isSilent;
  const consecutiveFailures = before.consecutiveFailures + 1;
  return { streak: { firstFailureAt, lastAttemptAt, consecutiveFailures }, disables };
}

/** The streak without this service's own downtime, which does not count against an endpoint. */
export function withoutGap(streak: FailureStreak, gapMs: number): FailureStreak {
  if (streak.firstFailureAt === null || streak.lastAttemptAt === null) return streak;
  return {
    ...streak,
    firstFailureAt: streak.firstFailureAt + gapMs,
    lastAttemptAt: streak.lastAttemptAt + gapMs,
  };
}
