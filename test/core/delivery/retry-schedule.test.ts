/** The schedule: proto/spec/webhooks.md 6. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DELAYS_MS, delayMs, jitterOf } from '../../../core/delivery/retry-schedule.ts';

const schedule = suite('core/delivery/retry-schedule');
const failed = { outcome: 'http', status: 500, retryAfterS: null };

schedule('schedule-exact: attempts at 0, 5 s, 5 m 5 s, 35 m 5 s and so on to 27 h 35 m 5 s', () => {
  const times = [0];
  for (let tries = 1; tries <= DELAYS_MS.length; tries += 1) {
    times.push((times.at(-1) ?? 0) + (delayMs(tries, failed, 1) ?? Number.NaN) / 1_000);
  }
  assert.equal(times, [0, 5, 305, 2_105, 9_305, 27_305, 63_305, 99_305]);
});

schedule('schedule-exact: the eighth failure has no retry', () => {
  assert.is(delayMs(7, failed, 1), 36_000_000);
  assert.is(delayMs(8, failed, 1), null);
  assert.is(delayMs(9, failed, 1), null);
});

schedule('schedule-exact: every delay is within a fifth of its step, whatever the jitter', () => {
  for (let round = 0; round < 2_000; round += 1) {
    const tries = 1 + (round % 7);
    const base = DELAYS_MS[tries - 1] ?? 0;
    const delay = delayMs(tries, failed, jitterOf(Math.random())) ?? Number.NaN;
    assert.ok(delay >= base * 0.8 && delay <= base * 1.2, `${delay} after failure ${tries}`);
  }
});

for (const [what, failure] of [
  ['429', { ...failed, status: 429 }],
  ['502', { ...failed, status: 502 }],
  ['504', { ...failed, status: 504 }],
  ['a time-out', { ...failed, outcome: 'timeout', status: 0 }],
] as const) {
  schedule(`${what} waits a minute at least`, () => {
    assert.is(delayMs(1, failure, 1), 60_000);
    assert.is(delayMs(2, failure, 1), 300_000);
  });
}

schedule('503 and 500 have no minimum delay', () => {
  for (const status of [500, 503]) assert.is(delayMs(1, { ...failed, status }, 1), 5_000);
});

for (const [what, tries, retryAfterS, wantedS] of [
  ['sooner than the step is raised to it', 2, 1, 300],
  ['within the step and the next is kept', 2, 1_000, 1_000],
  ['later than the next step is cut to it', 2, 86_400, 1_800],
  ['0 is the step', 1, 0, 5],
  ['after the seventh failure is the step', 7, 999_999, 36_000],
] as const) {
  schedule(`retry-after-clamped: one ${what}`, () => {
    assert.is(delayMs(tries, { ...failed, status: 503, retryAfterS }, 1), wantedS * 1_000);
  });
}

schedule.run();
