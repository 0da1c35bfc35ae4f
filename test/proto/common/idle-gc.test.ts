/** Memory is given back once, when a thread that has worked comes to rest. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { collectAll, looker } from '../../../proto/common/idle-gc.ts';

const test = suite('proto/common/idle-gc');
const MIB = 1 << 20;
const LOOK_MS = 5_000;

/** Looks every 5 s, after `shares` of the time were work. */
function watched() {
  let [now, active, idle, collected] = [0, 0, 0, 0];
  const look = looker({
    now: () => now,
    utilization: () => ({ active, idle, utilization: 0 }),
    collect: () => {
      collected += 1;
      active += 300; // collecting is work
    },
  });
  return (...shares: number[]) => {
    for (const share of shares) {
      now += LOOK_MS;
      active += share * LOOK_MS;
      idle += (1 - share) * LOOK_MS;
      look();
    }
    return collected;
  };
}

const minutes = (share: number, count: number) => Array.from({ length: 12 * count }, () => share);

test('garbage of the start is collected at the first idle check, not before', () => {
  const after = watched();
  assert.is(after(1, 0.5, 0.03), 0);
  assert.is(after(0.02), 1);
});

test('an idle thread is not collected again, whatever its heartbeats cost', () => {
  const after = watched();
  assert.is(after(...minutes(0.01, 60)), 1);
});

test('after more work garbage is collected again, at most once a minute', () => {
  const after = watched();
  assert.is(after(0), 1);
  assert.is(after(0.5, 0, 0.5, 0), 1);
  assert.is(after(...minutes(0, 1)), 2);
  assert.is(after(...minutes(0.5, 10)), 2);
  assert.is(after(0), 3);
});

test('the heap is smaller than before', () => {
  let held: object[] = Array.from({ length: 500_000 }, (_, id) => ({ id, text: `${id}` }));
  const full = process.memoryUsage().heapTotal;
  assert.is(held.length, 500_000);
  held = [];
  collectAll();
  assert.ok(process.memoryUsage().heapTotal < full - 20 * MIB);
});

test.run();
