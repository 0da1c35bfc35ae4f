/** A clock that the test sets. */

export type TestClock = { now: () => number; advance(ms: number): void; set(atMs: number): void };

/** A fixed start, so that failures print the same times: 2026-01-02T03:04:05.678Z. */
export const TEST_START_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

/** `now` is passed to the code under test; `advance(5 * 86_400_000)` moves it by five days. */
export function testClock(startMs = TEST_START_MS): TestClock {
  let current = startMs;
  return {
    now: () => current,
    advance(ms) {
      if (ms < 0) throw new RangeError('a clock is set back with set(), not advance()');
      current += ms;
    },
    set(atMs) {
      current = atMs;
    },
  };
}
