/** The order in which a run starts its files. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from './support/poll.ts';
import { runInLanes } from './support/run/lanes.ts';

const test = suite('lanes');
const SLOW = ['slow 1', 'slow 2', 'slow 3'];
const QUICK = ['quick 1', 'quick 2', 'quick 3'];

/** A run whose files end when the test says so. */
function startRun(slow: string[], quick: string[], wanted: number) {
  const running = new Map<string, () => void>();
  const started: string[] = [];
  let isOpen = true;
  const over = runInLanes(
    { slow, quick },
    { jobs: 3, mayBegin: () => isOpen, wanted: () => wanted },
    (file) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      started.push(file);
      running.set(file, resolve);
      return promise;
    },
  );
  return {
    started,
    over,
    end(file: string): void {
      running.get(file)?.();
      running.delete(file);
    },
    close(): void {
      isOpen = false;
    },
  };
}

test('a busy machine runs one slow file beside quick ones, and two when none is left', async () => {
  const run = startRun([...SLOW, 'slow 4'], QUICK, 100);
  await until(() => run.started.length === 3);
  assert.equal(run.started, ['slow 1', 'quick 1', 'quick 2']);
  run.end('quick 1');
  await until(() => run.started.length === 4);
  run.end('quick 2');
  await until(() => run.started.length === 5);
  assert.equal(run.started.slice(3), ['quick 3', 'slow 2']);
  run.end('quick 3');
  run.end('slow 1');
  await until(() => run.started.length === 6);
  run.end('slow 2');
  await until(() => run.started.length === 7);
  for (const file of ['slow 3', 'slow 4']) run.end(file);
  await run.over;
});

test('on an idle machine slow files run side by side, up to the number of jobs', async () => {
  const run = startRun([...SLOW, 'slow 4'], [], 0);
  await until(() => run.started.length === 3);
  run.end('slow 2');
  await until(() => run.started.length === 4);
  for (const file of ['slow 1', 'slow 3', 'slow 4']) run.end(file);
  await run.over;
});

test('no file begins when none may begin any more, and those that run are awaited', async () => {
  const run = startRun(SLOW, [], 100);
  await until(() => run.started.length === 2);
  run.close();
  run.end('slow 1');
  run.end('slow 2');
  await run.over;
  assert.equal(run.started, ['slow 1', 'slow 2']);
});

test.run();
