/** A pause ends with its time or with its signal, and leaves neither a timer nor a listener. */
import { getEventListeners } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { pause } from '../../../proto/common/pause.ts';

const test = suite('proto/common/pause');
const LONG_MS = 3_600_000;

/** Timers of this process that are pending. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
}

test('it ends after its time, with a signal and without', async () => {
  const { signal } = new AbortController();
  const startedAt = performance.now();
  await Promise.all([pause(20, signal), pause(20, undefined)]);
  assert.ok(performance.now() - startedAt >= 19);
  assert.is(getEventListeners(signal, 'abort').length, 0);
});

test('it ends when its signal aborts', async () => {
  const ending = new AbortController();
  const before = timers();
  const paused = pause(LONG_MS, ending.signal);
  assert.is(timers(), before + 1);
  ending.abort();
  await paused;
  assert.is(timers(), before);
  assert.is(getEventListeners(ending.signal, 'abort').length, 0);
});

test('it does not begin when its signal has aborted', async () => {
  const before = timers();
  await pause(LONG_MS, AbortSignal.abort());
  assert.is(timers(), before);
});

test.run();
