import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openShares } from '../../../proto/sharing/shares.ts';

const test = suite('proto/sharing/shares');

/** As much as the owner gets, one by one. */
function most(shares: ReturnType<typeof openShares>, owner: string): number {
  let held = 0;
  while (shares.acquire(owner, 1)) held += 1;
  return held;
}

test('one owner gets half, each next one half of the rest, and every owner gets some', () => {
  const shares = openShares(128);
  const got = ['a', 'b', 'c', 'd', 'e', 'f'].map((owner) => most(shares, owner));
  assert.equal(got, [64, 32, 16, 8, 4, 2]);
});

test('a released amount may be acquired again, by any owner', () => {
  const shares = openShares(12);
  assert.is(most(shares, 'a'), 6);
  assert.is(shares.acquire('b', 4), false, 'more than it would leave free');
  shares.release('a', 4);
  assert.is(most(shares, 'b'), 5);
  shares.release('a', 2);
  shares.release('b', 5);
  assert.is(shares.acquire('a', 6), true);
});

test.run();
