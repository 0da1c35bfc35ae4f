/**
 * Turns of the event loop for large bodies: their parse and checks run one after another, the
 * projects in turn, and use at most half of the thread. The other half serves small requests.
 */
import { setImmediate as nextLoop, setTimeout as pause } from 'node:timers/promises';
import { openFairQueue } from '../../proto/sharing/fair-queue.ts';

/** Resolves when it is the owner's turn, which lasts until the event loop goes on. */
export type Turns = (owner: string) => Promise<void>;

export function openTurns(): Turns {
  const waiting = openFairQueue<() => void>();
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const before = performance.now();
      next.item();
      await nextLoop();
      await pause(performance.now() - before);
    }
    isRunning = false;
  }

  return async (owner) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(owner, resolve);
    if (!isRunning) void run();
    return await promise;
  };
}
