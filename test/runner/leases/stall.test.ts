/** When a main thread counts as blocked: by ticks of the thread that watches it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { STALL_MAX_MS, watchForStall } from '../../../runner/leases/stall.ts';
import { until } from '../../support/poll.ts';

const CHILD = fileURLToPath(new URL('./stall-child.ts', import.meta.url));

const test = suite('runner/leases/stall');

/** The watch, with a timer that the test advances. */
function watched() {
  const stalls: number[] = [];
  const inspected: number[] = [];
  const timers = new Set<() => void>();
  let tickMs = 0;
  const watch = watchForStall(
    { onStall: (ms) => stalls.push(ms), onInspected: (ms) => inspected.push(ms) },
    (tick, ms) => {
      tickMs = ms;
      timers.add(tick);
      return { [Symbol.dispose]: () => void timers.delete(tick) };
    },
  );
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += tickMs) for (const tick of timers) tick();
  };
  return { watch, stalls, inspected, timers, pass };
}

test('a main thread that beats is never blocked', () => {
  const { watch, stalls, pass } = watched();
  for (let i = 0; i < 10; i++) {
    pass(STALL_MAX_MS);
    watch.beat(false);
  }
  assert.equal(stalls, []);
});

test('a main thread that is silent for longer than the limit is blocked, once', () => {
  const { stalls, timers, pass } = watched();
  pass(STALL_MAX_MS);
  assert.equal(stalls, []);
  pass(10_000);
  assert.is(stalls.length, 1);
  assert.is(timers.size, 0);
});

test('the time of a stopped process counts as one tick', () => {
  const { stalls, pass } = watched();
  pass(STALL_MAX_MS - 1_000);
  pass(1_000); // an hour passed since the tick before: nothing ran meanwhile
  assert.equal(stalls, []);
});

test('a main thread that a debugger may have stopped is reported once and not blocked', () => {
  const { watch, stalls, inspected, pass } = watched();
  watch.beat(true);
  pass(10 * STALL_MAX_MS);
  assert.equal([stalls, inspected], [[], [STALL_MAX_MS + 1_000]]);
  watch.beat(false); // the debugger was closed
  pass(STALL_MAX_MS + 1_000);
  assert.is(stalls.length, 1);
});

/** A process with the watch of the lease thread, its minute 6 s long. */
function start(...args: string[]) {
  const child = spawn(process.execPath, [...args, CHILD], { stdio: ['pipe', 'pipe', 'ignore'] });
  const said: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => said.push(line));
  const say = (word: string): void => void child.stdin.write(`${word}\n`);
  const has = (word: string) => until(() => said.includes(word));
  return {
    child,
    said,
    say,
    has,
    async [Symbol.asyncDispose]() {
      const over = once(child, 'exit');
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await over;
    },
  };
}

/** Of wall time: longer than the child's minute by half. */
const STOPPED_MS = 9_000;

test('a process in an endless loop is ended', async () => {
  await using scene = start();
  await scene.has('turns');
  scene.say('loop');
  await scene.has('blocked');
});

test('a process that was stopped for longer than the limit is not ended', async () => {
  await using scene = start();
  await scene.has('turns');
  scene.say('work');
  await scene.has('works');
  scene.child.kill('SIGSTOP');
  await pause(STOPPED_MS);
  scene.child.kill('SIGCONT');
  scene.say('ping');
  await scene.has('pong');
  scene.say('loop'); // the watchdog still runs
  await scene.has('blocked');
  assert.ok(scene.said.indexOf('pong') < scene.said.indexOf('blocked'));
});

test('a process in an endless loop with an open inspector is not ended', async () => {
  await using scene = start('--inspect=127.0.0.1:0');
  await scene.has('turns');
  scene.say('loop');
  await scene.has('inspected');
  assert.not(scene.said.includes('blocked'));
});

test.run();
