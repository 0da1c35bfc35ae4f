/** Revoked keys as they are looked up for each link: at most once a second, and never too late. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { revokedKeys } from '../../../core/projects/revoked-keys.ts';
import { testClock } from '../../support/clock.ts';
import { errorOf } from '../../support/fault.ts';

const test = suite('core/projects/revoked-keys');

function open() {
  const clock = testClock();
  const seen: number[] = [];
  const state = { ids: ['aaaaaaaa'], fails: false, wake: () => {} };
  const store = {
    async revokedKeys(since: number) {
      seen.push(since);
      if (state.fails) throw new Error('no database');
      return state.ids;
    },
    onWake(_topic: string, listener: () => void) {
      state.wake = listener;
      return () => {};
    },
  };
  const isRevoked = revokedKeys({ store, now: clock.now, steady: clock.now });
  return { clock, seen, state, isRevoked };
}

test('the database is read once per second, for any number of links', async () => {
  const { clock, seen, state, isRevoked } = open();
  const asked = Array.from({ length: 100 }, () => isRevoked('aaaaaaaa'));
  assert.equal(new Set(await Promise.all(asked)), new Set([true]));
  assert.not.ok(await isRevoked('bbbbbbbb'));
  assert.equal(seen, [clock.now() - 86_400_000]);
  state.ids = ['bbbbbbbb']; // by another process: this process is not notified
  clock.advance(999);
  assert.not.ok(await isRevoked('bbbbbbbb'));
  clock.advance(1);
  assert.ok(await isRevoked('bbbbbbbb'));
  assert.is(seen.length, 2);
});

test('a key revoked by this core is known at once', async () => {
  const { state, isRevoked } = open();
  assert.not.ok(await isRevoked('bbbbbbbb'));
  state.ids = ['aaaaaaaa', 'bbbbbbbb'];
  state.wake();
  assert.ok(await isRevoked('bbbbbbbb'));
});

test('a failed read is an error, and is not cached', async () => {
  const { state, isRevoked } = open();
  state.fails = true;
  assert.match(String(await errorOf(isRevoked('aaaaaaaa'))), 'no database');
  state.fails = false;
  assert.ok(await isRevoked('aaaaaaaa'));
});

test.run();
