/** A long poll reads, listens and ends, on a store whose wake-ups the test sends. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { longPoll, type PollOptions, waitUntil } from '../../../core/api/long-poll.ts';
import { errorOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';

const test = suite('core/api/long-poll');
const WAIT_MS = 20_000;
const callOf = ({ signal }: AbortController) => ({
  signal,
  deadline: performance.now() + 2 * WAIT_MS,
});

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
      call: callOf(new AbortController()),
      closing: new AbortController().signal,
      waitMs: WAIT_MS,
      isDone: (value) => value > 0,
      ...options,
    });
  return { state, look, set, poll };
}

test('a final first result is returned without waiting', async () => {
  const { state, set, poll } = counter();
  set(1);
  assert.is(await poll(), 1);
  assert.equal([state.looks, state.listeners.size], [1, 0]);
});

test('a wake causes another read, until the result is final', async () => {
  const { state, set, poll } = counter();
  const polled = poll({ isDone: (value) => value > 1 });
  await until(() => state.looks === 1);
  set(1);
  await until(() => state.looks === 2);
  set(2);
  assert.is(await polled, 2);
  assert.equal([state.looks, state.listeners.size], [3, 0]);
});

test('a change during a read is not missed', async () => {
  const { state, look, set, poll } = counter();
  const polled = poll({}, async () => {
    const found = await look();
    if (state.looks === 1) set(1);
    return found;
  });
  assert.is(await polled, 1);
  assert.is(state.looks, 2);
});

test('a poll without time reads once; a poll reads again when its time is over', async () => {
  const { state, poll } = counter();
  assert.is(await poll({ waitMs: 0 }), 0);
  assert.is(state.looks, 1);
  assert.is(await poll({ waitMs: 20 }), 0);
  assert.ok(state.looks >= 3);
});

test('an aborted signal ends the poll with the last result and without further reads', async () => {
  const { state, poll } = counter();
  const over = new AbortController();
  const polled = poll({ call: callOf(over) });
  await until(() => state.looks === 1);
  over.abort();
  assert.is(await polled, 0);
  assert.equal([state.looks, state.listeners.size], [1, 0]);
  assert.is(await poll({ call: callOf(over) }), 0, 'one that has aborted before');
  assert.is(state.looks, 2);
});

test('a result that becomes due is read without a wake', async () => {
  const { state, poll } = counter();
  assert.is(await poll({ againMs: () => 5, isDone: () => state.looks === 3 }), 0);
});

test('a failed read ends the poll and its subscription', async () => {
  const { state, poll } = counter();
  const broken = new Error('no database');
  assert.is(await errorOf(poll({}, () => Promise.reject(broken))), broken);
  assert.is(state.listeners.size, 0);
});

test('a wait ends before the deadline of its call, and within the limit', () => {
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
