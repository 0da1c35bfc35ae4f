/**
 * The sweep: ends work whose lease, time or patience is over, every `sweepMs`, for as long as core
 * runs.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../proto/log.ts';
import type { Store } from './store/types.ts';

/** Pieces in one operation: others commit in between. */
const BATCH = 100;

export type Sweeper = AsyncDisposable;

export function startSweep(options: {
  store: Pick<Store, 'sweepWork'>;
  log: Log;
  now: () => number;
  sweepMs: number;
}): Sweeper {
  const { store, log, now, sweepMs } = options;
  const closing = new AbortController();
  const { signal } = closing;

  async function run(): Promise<void> {
    while (!signal.aborted) {
      try {
        const ended = await store.sweepWork({ at: now(), max: BATCH });
        if (ended > 0) log.warn({ ended }, 'work was lost or out of time');
        if (ended === BATCH) continue;
      } catch (error) {
        log.error({ err: error }, 'sweep failed');
      }
      await sleep(sweepMs, undefined, { signal }).catch(() => {}); // rejects only when closing
    }
  }

  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      await running;
    },
  };
}
