/** A long poll looks, listens and ends: on a store whose wakes the test makes. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { longPoll, type PollOptions, waitUntil } from '../../../core/api/long-poll.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';

const test = suite('core/api/long-poll');
const MINUTE_MS = 60_000;

/** A poll of one number: `looks` counts, `set` changes it and wakes. */
function counter() {
  const listeners = new Set<() => void>();
  const state = { value: 0, looks: 0, listeners };
  const store = {
    onWake(_topic: string, listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const look = async () => {
    state.looks += 1;
    return state.value;
  };
  const set = (value: number): void => {
    state.value = value;
    for (const listener of [...listeners]) listener();
  };
  const poll = (options: Partial<PollOptions<number>> = {}, lookNow = look) =>
    longPoll(store, 'sessions', lookNow, {
      until: performance.now() + MINUTE_MS,
      isDone: (value) => value > 0,
      signal: new AbortController().signal,
      ...options,
    });
  return { state, look, set, poll };
}

test('what is done at the first look is answered without a wait', async () => {
  const { state, set, poll } = counter();
  set(1);
  assert.is(await poll(), 1);
  assert.equal([state.looks, state.listeners.size], [1, 0]);
});

test('a wake makes it look again, until it is done', async () => {
  const { state, set, poll } = counter();
  const polled = poll({ isDone: (value) => value > 1 });
  await until(() => state.looks === 1);
  set(1);
  await until(() => state.looks === 2);
  set(2);
  assert.is(await polled, 2);
  assert.equal([state.looks, state.listeners.size], [3, 0]);
});

test('a change while it looks is not missed', async () => {
  const { state, look, set, poll } = counter();
  const polled = poll({}, async () => {
    const found = await look();
    if (state.looks === 1) set(1);
    return found;
  });
  assert.is(await polled, 1);
  assert.is(state.looks, 2);
});

test('without time it looks once; at the end of its time once more', async () => {
  const { state, poll } = counter();
  assert.is(await poll({ until: performance.now() }), 0);
  assert.is(state.looks, 1);
  assert.is(await poll({ until: performance.now() + 20 }), 0);
  assert.ok(state.looks >= 3);
});

test('a signal ends it with what was found, and nothing is looked for any more', async () => {
  const { state, poll } = counter();
  const over = new AbortController();
  const polled = poll({ signal: over.signal });
  await until(() => state.looks === 1);
  over.abort();
  assert.is(await polled, 0);
  assert.equal([state.looks, state.listeners.size], [1, 0]);
  assert.is(await poll({ signal: over.signal }), 0, 'one that has aborted before');
  assert.is(state.looks, 2);
});

test('what comes due is looked for although nothing woke', async () => {
  const { state, poll } = counter();
  assert.is(await poll({ againMs: () => 5, isDone: () => state.looks === 3 }), 0);
});

test('a look that fails ends it, and listens no more', async () => {
  const { state, poll } = counter();
  const broken = new Error('no database');
  assert.is(await errorOf(poll({}, () => Promise.reject(broken))), broken);
  assert.is(state.listeners.size, 0);
});

test('a wait ends before its call, and within the limit', () => {
  const at = performance.now();
  const leftMs = (waitMs: number, callMs: number, maxMs?: number) =>
    Math.round((waitUntil({ deadline: at + callMs }, waitMs, maxMs) - at) / 100) * 100;
  assert.is(leftMs(1_000, 30_000), 1_000);
  assert.is(leftMs(60_000, 90_000), 25_000);
  assert.is(leftMs(60_000, 90_000, 60_000), 60_000);
  assert.is(leftMs(10_000, 5_000), 4_500);
  assert.is(leftMs(10_000, 100), 0);
});

test.run();
