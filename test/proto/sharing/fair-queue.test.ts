import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openFairQueue } from '../../../proto/sharing/fair-queue.ts';

const test = suite('proto/sharing/fair-queue');

function filled(text: string) {
  const queue = openFairQueue<string>();
  for (const [at, owner] of [...text].entries()) queue.push(owner, `${owner}${at}`);
  return queue;
}

test('owners are served in turn; the items of one stay in order', () => {
  const queue = filled('aaabbc');
  const order: (string | undefined)[] = [];
  while (queue.size > 0) order.push(queue.shift()?.item);
  assert.equal(order, ['a0', 'b3', 'c5', 'a1', 'b4', 'a2']);
  assert.is(queue.shift(), undefined);
});

test('an owner that is not allowed keeps its turn', () => {
  const queue = filled('aab');
  assert.equal(
    queue.shift((owner) => owner !== 'a'),
    { owner: 'b', item: 'b2' },
  );
  assert.is(
    queue.shift((owner) => owner !== 'a'),
    undefined,
  );
  assert.equal(queue.shift(), { owner: 'a', item: 'a0' });
});

test('items are removed one by one, by owner, or all', () => {
  const queue = filled('aabbc');
  assert.is(queue.remove('a', 'a0'), true);
  assert.is(queue.remove('a', 'a0'), false);
  assert.equal([queue.size, queue.sizeOf('a')], [4, 1]);
  assert.equal(queue.clear('b'), ['b2', 'b3']);
  assert.equal(queue.clear(), ['a1', 'c4']);
  assert.is(queue.size, 0);
});

test.run();
