/** A clock that moves when it is told to. */

export type TestClock = { now: () => number; advance(ms: number): void; set(atMs: number): void };

/** A fixed start, so that a failure reads the same each time: 2026-01-02T03:04:05.678Z. */
export const TEST_START_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

/** `now` is what the code under test takes; five days pass in `advance(5 * 86_400_000)`. */
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
