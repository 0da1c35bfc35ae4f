/** Work that repeats: its pauses are the test's. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { periodically } from '../../../core/common/periodically.ts';
import { openLog } from '../../../proto/common/log.ts';
import { until } from '../../support/poll.ts';

const test = suite('core/common/periodically');
const FAILURE = 'sweep failed';

/** A loop of 1,000 ms that records its steps; each pause lasts until `next`. */
function scene(run: (signal: AbortSignal) => Promise<void>, firstMs?: number) {
  const pauses: number[] = [];
  const errors: unknown[][] = [];
  const error = (...line: unknown[]) => void errors.push(line);
  const log = Object.assign(openLog({ role: 'test', level: 'silent' }), { error });
  let next = Promise.withResolvers<void>();
  const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
    pauses.push(ms);
    if (signal.aborted) return;
    await Promise.race([next.promise, new Promise((end) => signal.addEventListener('abort', end))]);
  };
  const loop = periodically(1_000, run, { log, failure: FAILURE, firstMs, pause });
  return {
    pauses,
    errors,
    next(): void {
      next.resolve();
      next = Promise.withResolvers();
    },
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}

test('the loop pauses before the first run and between two runs', async () => {
  let runs = 0;
  await using app = scene(async () => {
    runs += 1;
  });
  assert.is(runs, 0);
  app.next();
  await until(() => app.pauses.length === 2);
  assert.is(runs, 1);
  app.next();
  await until(() => app.pauses.length === 3);
  assert.is(runs, 2);
  assert.equal(app.pauses, [1_000, 1_000, 1_000]);
});

test('the first run may have its own delay', async () => {
  await using app = scene(async () => {}, 0);
  app.next();
  await until(() => app.pauses.length === 2);
  assert.equal(app.pauses, [0, 1_000]);
});

test('a failed run is logged once, and the next one follows', async () => {
  const broken = new Error('no disk');
  let runs = 0;
  await using app = scene(async () => {
    runs += 1;
    if (runs === 1) throw broken;
  });
  for (const n of [1, 2]) {
    app.next();
    await until(() => runs === n && app.pauses.length === n + 1);
  }
  assert.equal(app.errors, [[{ err: broken }, FAILURE]]);
});

test('disposal waits for the current run, and no other begins', async () => {
  const under = Promise.withResolvers<void>();
  let runs = 0;
  let isAborted = false;
  const app = scene(async (signal) => {
    runs += 1;
    await under.promise;
    isAborted = signal.aborted;
  });
  app.next();
  await until(() => runs === 1);
  let isEnded = false;
  const ended = app[Symbol.asyncDispose]().then(() => {
    isEnded = true;
  });
  await new Promise(setImmediate);
  assert.not(isEnded);
  under.resolve();
  await ended;
  assert.ok(isAborted);
  assert.is(runs, 1);
});

test('disposal does not wait for a pause', async () => {
  const log = openLog({ role: 'test', level: 'silent' });
  let runs = 0;
  const run = () => {
    runs += 1;
  };
  const loop = periodically(3_600_000, run, { log, failure: FAILURE });
  await loop[Symbol.asyncDispose]();
  assert.is(runs, 0);
});

test.run();
