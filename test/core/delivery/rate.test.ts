/** How fast one endpoint is sent to: proto/spec/webhooks.md 9. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  BREAKER_AFTER,
  CAP_MAX,
  capOf,
  type Pace,
  paceAfter,
  pacedAfter,
  tokensOf,
} from '../../../core/delivery/rate.ts';

const pace = suite('core/delivery/rate');
const FULL_PACE: Pace = { cap: CAP_MAX, breakerMs: 0, notBefore: 0 };
const failed = { outcome: 'http', status: 500, at: 0, failuresInRow: 1 };

for (const [what, attempt] of [
  ['429', { ...failed, status: 429 }],
  ['502', { ...failed, status: 502 }],
  ['503', { ...failed, status: 503 }],
  ['504', { ...failed, status: 504 }],
  ['a time-out', { ...failed, outcome: 'timeout', status: 0 }],
] as const) {
  pace(`${what} halves the cap, down to one; a success adds one, up to eight`, () => {
    const caps: number[] = [];
    let now: Pace = FULL_PACE;
    const ok = { outcome: 'ok', status: 200, at: 0, failuresInRow: 0 };
    for (const one of [...Array(4).fill(attempt), ...Array(8).fill(ok)]) {
      now = paceAfter(now, one);
      caps.push(now.cap);
    }
    assert.equal(caps, [4, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
  });
}

pace('another failure does not change the cap', () => {
  for (const attempt of [failed, { ...failed, outcome: 'connect', status: 0 }]) {
    assert.equal(paceAfter(FULL_PACE, attempt), FULL_PACE);
  }
});

pace('the 20th failure in a row opens the breaker: one probe, 1 s doubling to 60 s', () => {
  let now: Pace = FULL_PACE;
  const waits: number[] = [];
  let at = 0;
  for (let failuresInRow = 1; failuresInRow <= BREAKER_AFTER + 8; failuresInRow += 1) {
    now = paceAfter(now, { ...failed, at, failuresInRow });
    waits.push(now.breakerMs / 1_000);
    assert.is(capOf(now), now.breakerMs > 0 ? 1 : 8);
    at = Math.max(at, now.notBefore);
  }
  assert.equal(waits.slice(18), [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
});

pace('attempts in flight when the breaker opened do not extend its wait', () => {
  const open = paceAfter(FULL_PACE, { ...failed, at: 100, failuresInRow: 20 });
  assert.equal(paceAfter(open, { ...failed, at: 101, failuresInRow: 21 }), open);
  const probe = paceAfter(open, { ...failed, at: 1_100, failuresInRow: 22 });
  assert.equal([probe.breakerMs, probe.notBefore], [2_000, 3_100]);
});

pace('the first success closes the breaker', () => {
  const open = paceAfter(FULL_PACE, { ...failed, failuresInRow: 25 });
  const closed = paceAfter(open, { outcome: 'ok', status: 200, at: 1, failuresInRow: 0 });
  assert.equal(closed, FULL_PACE);
});

pace("the rate allows a second's deliveries at once, then one every 20 ms", () => {
  assert.is(tokensOf(0, 10_000, 50), 50);
  const spent = pacedAfter(0, 10_000, { count: 50, ratePerS: 50 });
  assert.is(tokensOf(spent, 10_000, 50), 0);
  assert.is(tokensOf(spent, 10_019, 50), 0);
  assert.is(tokensOf(spent, 10_020, 50), 1);
  assert.is(tokensOf(spent, 10_500, 50), 25);
  assert.is(tokensOf(spent, 99_999, 50), 50, 'no more than a second of it is saved');
});

pace.run();
