/** Times that can be subtracted, whatever becomes of the wall clock. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { steadyClock } from '../../../proto/common/steady-clock.ts';

const test = suite('proto/common/steady-clock');
const HOUR_MS = 3_600_000;

for (const stepMs of [HOUR_MS, -HOUR_MS]) {
  test(`a wall clock that is set by ${stepMs} ms does not move it`, () => {
    const real = Date.now;
    const now = steadyClock();
    const before = now();
    try {
      Date.now = () => real() + stepMs;
      const passedMs = now() - before;
      assert.ok(Number.isInteger(passedMs) && passedMs >= 0 && passedMs < 60_000, `${passedMs}`);
    } finally {
      Date.now = real;
    }
  });
}

test("the clock begins at the wall clock's time", () => {
  assert.ok(Math.abs(steadyClock()() - Date.now()) < 60_000);
});

test.run();
