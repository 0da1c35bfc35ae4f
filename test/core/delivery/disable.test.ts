/**
 * The five days: the nine scenarios of proto/spec/webhooks.md 7, each attempt on the schedule of a
 * real delivery.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCoreConfig } from '../../../core/config.ts';
import {
  afterAttempt as afterAttemptBy,
  type FailureStreak,
  withoutGap,
} from '../../../core/delivery/disable.ts';
import { delayMs } from '../../../core/delivery/retry-schedule.ts';

const disable = suite('core/delivery/disable');
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 1);
const FIVE_DAYS = readCoreConfig({}).webhookRule;
const NO_STREAK = { firstFailureAt: null, lastAttemptAt: null, consecutiveFailures: 0 };

function afterAttempt(
  before: FailureStreak,
  attempt: { ok: boolean; at: number },
  rule = FIVE_DAYS,
) {
  return afterAttemptBy(before, attempt, rule);
}

/** The attempts of an event at `at`, all of which fail. */
function attemptsOf(at: number): number[] {
  const times = [at];
  for (let tries = 1; ; tries += 1) {
    const delay = delayMs(tries, { outcome: 'http', status: 500, retryAfterS: null }, 1);
    if (delay === null) return times;
    times.push((times.at(-1) ?? at) + delay);
  }
}

/** Plays attempts in order of time; the time since START of the one that disables, or undefined. */
function play(attempts: { at: number; ok: boolean }[]): number | undefined {
  let streak: FailureStreak = NO_STREAK;
  for (const attempt of attempts.toSorted((a, b) => a.at - b.at)) {
    const after = afterAttempt(streak, attempt);
    if (after.disables) return attempt.at - START;
    streak = after.streak;
  }
  return undefined;
}

const failing = (times: number[]) => times.map((at) => ({ at, ok: false }));
/** Events at these times since START, with all their retries. */
const events = (...since: number[]) => failing(since.flatMap((ms) => attemptsOf(START + ms)));
const every = (stepMs: number, forMs: number) =>
  Array.from({ length: Math.floor(forMs / stepMs) + 1 }, (_, n) => n * stepMs);

disable('five-days 1: failing every hour disables at 120 h exactly', () => {
  const hourly = every(HOUR, 6 * DAY).map((ms) => START + ms);
  assert.is(play(failing(hourly)), 120 * HOUR);
});

disable('five-days 2: one event ever does not disable', () => {
  assert.is(play(events(0)), undefined);
});

disable(
  'five-days 3: a failure on day 0, an event after day 5: disables at its retry, not before',
  () => {
    assert.is(play(events(0, 5 * DAY + 1_000)), 5 * DAY + 6_000);
  },
);

disable('five-days 4: the same, but the retry succeeds: stays', () => {
  const late = START + 5 * DAY + 1_000;
  const attempts = [...events(0), { at: late, ok: false }, { at: late + 5_000, ok: true }];
  assert.is(play(attempts), undefined);
});

disable('five-days 5: an event every 3 days disables at 144 h, by a retry', () => {
  assert.is(play(events(...every(3 * DAY, 30 * DAY))), 144 * HOUR + 5_000);
});

disable('five-days 6: an event every 11 days never disables', () => {
  assert.is(play(events(...every(11 * DAY, 110 * DAY))), undefined);
});

disable('five-days 7: a success at 4.9 days starts anew', () => {
  const hourly = failing(every(HOUR, 6 * DAY).map((ms) => START + ms));
  assert.is(play([...hourly, { at: START + 4.9 * DAY, ok: true }]), undefined);
});

disable('five-days 8: one success in twenty never disables', () => {
  const attempts = every(HOUR, 60 * DAY).map((ms, n) => ({ at: START + ms, ok: n % 20 === 19 }));
  assert.is(play(attempts), undefined);
});

disable('five-days 9: our own outage does not count', () => {
  let streak: FailureStreak = NO_STREAK;
  for (const at of [0, 1, 2, 3].map((days) => START + days * DAY)) {
    streak = afterAttempt(streak, { at, ok: false }).streak;
  }
  const back = START + 5 * DAY + HOUR;
  const shifted = withoutGap(streak, 2 * DAY);
  assert.ok(afterAttempt(streak, { at: START + 4 * DAY, ok: false }).disables === false);
  const after = afterAttempt(shifted, { at: back, ok: false });
  assert.is(after.disables, false);
  assert.is(after.streak.firstFailureAt, START + 2 * DAY);
});

disable('read literally, the first attempt after a silence disables too', () => {
  const rule = { ...FIVE_DAYS, silence: false };
  const at = START + 5 * DAY + HOUR;
  const { streak } = afterAttempt(NO_STREAK, { at: START, ok: false });
  assert.is(afterAttempt(streak, { at, ok: false }).disables, false);
  assert.is(afterAttempt(streak, { at, ok: false }, rule).disables, true);
  assert.is(afterAttempt(streak, { at, ok: true }, rule).disables, false);
});

disable('downtime does not change a streak without failures', () => {
  assert.equal(withoutGap(NO_STREAK, DAY), NO_STREAK);
});

disable('reports out of order do not set the last attempt back', () => {
  const first = afterAttempt(NO_STREAK, { at: START + 1_000, ok: false }).streak;
  const second = afterAttempt(first, { at: START, ok: false }).streak;
  assert.is(second.lastAttemptAt, START + 1_000);
  assert.is(second.consecutiveFailures, 2);
});

disable.run();
