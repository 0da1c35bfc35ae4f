/**
 * Waits for a topic of the store. Opened before looking for work, so that what comes in between is
 * not missed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Store, Topic } from './store/types.ts';

export type Wake = Disposable & {
  /** Returns when the topic was woken since the opening, the time is over, or the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
};

export function openWake(store: Pick<Store, 'onWake'>, topic: Topic): Wake {
  const woken = new AbortController();
  const stop = store.onWake(topic, () => woken.abort());
  return {
    async wait(ms, signal) {
      try {
        await sleep(ms, undefined, { signal: AbortSignal.any([woken.signal, signal]) });
      } catch (error) {
        if (!(error instanceof Error && error.name === 'AbortError')) throw error;
      }
    },
    [Symbol.dispose]: stop,
  };
}
