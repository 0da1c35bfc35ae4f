/**
 * Waits for a topic of the store. Opened before looking for work, so that what comes in between is
 * not missed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Call } from '../../proto/rpc/local.ts';
import type { Topic } from '../store/messages.ts';
import type { Store } from '../store/types.ts';

export type Wake = Disposable & {
  /** Returns when the topic was woken since the opening, the time is over, or the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
};

/** Source: runners.proto. */
const WAIT_MAX_MS = 25_000;
/** An answer leaves before the call's own deadline would answer in its place. */
const ANSWER_MARGIN_MS = 500;

/** When a call's wait is over, by performance.now(): as asked, and in time for an answer. */
export function waitUntil(
  { deadline }: Pick<Call, 'deadline'>,
  waitMs: number,
  maxMs = WAIT_MAX_MS,
): number {
  const at = performance.now();
  const left = deadline - at - ANSWER_MARGIN_MS;
  return at + Math.min(waitMs, maxMs, Math.max(0, left));
}

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
