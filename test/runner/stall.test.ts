/** When a main thread counts as blocked: by ticks of the thread that watches it. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { STALL_MAX_MS, watchForStall } from '../../runner/stall.ts';

const test = suite('runner/stall');

/** The watch, with a timer that the test turns. */
function watched() {
  const stalls: number[] = [];
  const timers = new Set<() => void>();
  let tickMs = 0;
  const watch = watchForStall(
    (ms) => stalls.push(ms),
    (tick, ms) => {
      tickMs = ms;
      timers.add(tick);
      return { [Symbol.dispose]: () => void timers.delete(tick) };
    },
  );
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += tickMs) for (const tick of timers) tick();
  };
  return { watch, stalls, timers, pass };
}

test('a main thread that beats is never blocked', () => {
  const { watch, stalls, pass } = watched();
  for (let i = 0; i < 10; i++) {
    pass(STALL_MAX_MS);
    watch.beat();
  }
  assert.equal(stalls, []);
});

test('one that is silent for longer than the bound is blocked, once', () => {
  const { stalls, timers, pass } = watched();
  pass(STALL_MAX_MS);
  assert.equal(stalls, []);
  pass(10_000);
  assert.is(stalls.length, 1);
  assert.is(timers.size, 0);
});

test('time in which the whole process was stopped is one tick', () => {
  const { stalls, pass } = watched();
  pass(STALL_MAX_MS - 1_000);
  pass(1_000); // an hour passed since the tick before: nothing ran meanwhile
  assert.equal(stalls, []);
});

test.run();
