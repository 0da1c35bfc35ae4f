import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openSemaphore, type Semaphore } from '../../../proto/sharing/semaphore.ts';
import { errorOf } from '../../support/fault.ts';

const test = suite('proto/sharing/semaphore');
const never = new AbortController().signal;

/** Acquires for the owner and writes it down. */
async function noted(semaphore: Semaphore, order: string[], owner: string) {
  const turn = await semaphore.acquire(never, owner);
  order.push(owner);
  return turn;
}

const settled = () => new Promise(setImmediate);

test('at most `max` permits are held; waiters acquire in order, before new requests', async () => {
  const semaphore = openSemaphore({ max: 2, ofOwner: 2 });
  const order: string[] = [];
  const [first, second] = [
    await semaphore.acquire(never, 'a'),
    await semaphore.acquire(never, 'b'),
  ];
  const third = noted(semaphore, order, 'c');
  const fourth = noted(semaphore, order, 'd');
  await settled();
  assert.equal(order, []);
  first[Symbol.dispose]();
  const late = noted(semaphore, order, 'e');
  await third;
  assert.equal(order, ['c']);
  second[Symbol.dispose]();
  (await fourth)[Symbol.dispose]();
  await late;
  assert.equal(order, ['c', 'd', 'e']);
});

test('without owners, permits are granted in the order of the requests', async () => {
  const semaphore = openSemaphore({ max: 2 });
  const held = [await semaphore.acquire(never), await semaphore.acquire(never)];
  const order: string[] = [];
  const waiting = ['first', 'second'].map(async (name) => {
    await semaphore.acquire(never);
    order.push(name);
  });
  await settled();
  assert.equal(order, []);
  held[0]?.[Symbol.dispose]();
  await settled();
  assert.equal(order, ['first']);
  held[1]?.[Symbol.dispose]();
  await Promise.all(waiting);
  assert.equal(order, ['first', 'second']);
});

test('waiting owners are served in turn, whatever their number of requests', async () => {
  const semaphore = openSemaphore({ max: 1, ofOwner: 1 });
  const order: string[] = [];
  const held = await semaphore.acquire(never, 'z');
  const owners = ['a', 'a', 'a', 'b', 'c', 'b'];
  const all = owners.map(async (owner) => {
    (await noted(semaphore, order, owner))[Symbol.dispose]();
  });
  held[Symbol.dispose]();
  await Promise.all(all);
  assert.is(order.join(''), 'abcaba');
});

test('an owner holds no more than its share, and the rest stays free for others', async () => {
  const semaphore = openSemaphore({ max: 2, ofOwner: 1 });
  const order: string[] = [];
  const first = await semaphore.acquire(never, 'a');
  const more = noted(semaphore, order, 'a');
  await noted(semaphore, order, 'b');
  assert.equal(order, ['b']);
  first[Symbol.dispose]();
  await more;
  assert.equal(order, ['b', 'a']);
});

test('an aborted waiter uses no permit, and a permit is released once', async () => {
  const semaphore = openSemaphore({ max: 1, ofOwner: 1 });
  const held = await semaphore.acquire(never, 'a');
  const leaving = new AbortController();
  const left = errorOf(semaphore.acquire(leaving.signal, 'a'));
  leaving.abort(new Error('left'));
  assert.is(((await left) as Error).message, 'left');
  assert.is(((await errorOf(semaphore.acquire(leaving.signal, 'a'))) as Error).message, 'left');
  held[Symbol.dispose]();
  held[Symbol.dispose]();
  const order: string[] = [];
  const next = await noted(semaphore, order, 'a');
  const waiting = noted(semaphore, order, 'b');
  await settled();
  assert.equal(order, ['a']);
  next[Symbol.dispose]();
  await waiting;
});

test.run();
