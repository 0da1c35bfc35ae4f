/**
 * A main thread and the watch of a lease thread, ten times as fast as a runner's. Prints
 * `turns`, `blocked`, `inspected`; reads `loop`, `work` and `ping`.
 */

import { writeSync } from 'node:fs';
import inspector from 'node:inspector';
import { createInterface } from 'node:readline';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { watchForStall } from '../../../runner/leases/stall.ts';

const FASTER = 10;
const BEAT_MS = 50;
const WORK_US = 100_000;

const say = (word: string): void => void writeSync(1, `${word}\n`);

function watchMain(): void {
  const watch = watchForStall(
    { onStall: () => say('blocked'), onInspected: () => say('inspected') },
    (tick, ms) => {
      const timer = setInterval(tick, ms / FASTER);
      return { [Symbol.dispose]: () => clearInterval(timer) };
    },
  );
  parentPort?.on('message', (isInspected: boolean) => watch.beat(isInspected));
}

/** So short that it is no stall, and not over while the process is stopped. */
function work(): void {
  say('works');
  const before = process.cpuUsage();
  while (process.cpuUsage(before).user < WORK_US);
}

function turn(): void {
  const thread = new Worker(new URL(import.meta.url), { execArgv: [] });
  const beat = (): void => thread.postMessage(inspector.url() !== undefined);
  thread.on('online', () => {
    beat();
    setInterval(beat, BEAT_MS);
    say('turns');
  });
  createInterface({ input: process.stdin }).on('line', (word) => {
    if (word === 'ping') say('pong');
    if (word === 'loop') for (;;);
    if (word === 'work') work();
  });
}

if (isMainThread) turn();
else watchMain();
