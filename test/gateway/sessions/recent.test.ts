/** Answers that are shared for a moment: one read for many, none that is old, and a limit. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { recent } from '../../../gateway/sessions/recent.ts';

const test = suite('gateway/sessions/recent');

function open(max = 10) {
  let at = 0;
  let reads = 0;
  const shared = recent<number>({ keptMs: 1_000, max, now: () => at });
  const read = async () => {
    reads += 1;
    return reads;
  };
  return {
    shared,
    get: (key: string) => shared(key, read),
    later: (ms: number) => {
      at += ms;
    },
    reads: () => reads,
  };
}

test('twenty requests at once, and those within a second, share one read', async () => {
  const { get, later, reads } = open();
  const answers = await Promise.all(Array.from({ length: 20 }, () => get('a')));
  assert.equal([...new Set(answers)], [1]);
  later(999);
  assert.is(await get('a'), 1);
  later(1);
  assert.is(await get('a'), 2);
  assert.is(await get('b'), 3);
  assert.is(reads(), 3);
});

test('a failure is shared while it is on its way, and then read again', async () => {
  const { shared, get } = open();
  const failing = Promise.withResolvers<number>();
  const both = [shared('a', () => failing.promise), get('a')];
  failing.reject(new Error('gone'));
  for (const one of await Promise.allSettled(both)) assert.is(one.status, 'rejected');
  assert.is(await get('a'), 1);
});

test('the oldest answers make room, and a forgotten one is read again', async () => {
  const { shared, get, reads } = open(2);
  for (const key of ['a', 'b', 'c']) await get(key);
  await get('b');
  await get('c');
  assert.is(reads(), 3);
  await get('a');
  assert.is(reads(), 4);
  shared.forget('a');
  await get('a');
  assert.is(reads(), 5);
});

test.run();
