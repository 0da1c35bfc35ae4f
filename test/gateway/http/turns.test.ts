/** Turns of large bodies: the order of projects, and the rest between two turns. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openTurns } from '../../../gateway/http/turns.ts';

const test = suite('gateway/http/turns');
const BUSY_MS = 20;

function work(): void {
  const until = performance.now() + BUSY_MS;
  while (performance.now() < until);
}

test('projects have turns one after another, each its own in their order', async () => {
  const turnOf = openTurns();
  const seen: string[] = [];
  const take = async (owner: string, name: string) => {
    await turnOf(owner);
    seen.push(name);
  };
  await Promise.all([take('a', 'a1'), take('a', 'a2'), take('a', 'a3'), take('b', 'b1')]);
  assert.equal(seen, ['a1', 'a2', 'b1', 'a3']);
});

test('between two turns there is as much time as the first one took', async () => {
  const turnOf = openTurns();
  const ends: number[] = [];
  const starts: number[] = [];
  const take = async () => {
    await turnOf('a');
    starts.push(performance.now());
    work();
    ends.push(performance.now());
  };
  await Promise.all([take(), take()]);
  const [, second = 0] = starts;
  const [first = 0] = ends;
  assert.ok(second - first >= BUSY_MS - 2, `${second - first} ms`); // timers may be early by one
});

test('nobody waits for a turn when no other has one', async () => {
  const turnOf = openTurns();
  let isNext = false;
  setImmediate(() => (isNext = true));
  await turnOf('a');
  assert.not(isNext);
});

test.run();
