/**
 * Long polls: a call reads the state, and again whenever a topic of the store changes, until there
 * is an answer or the wait is over. All services that wait for a change use it.
 */
import { pause } from '../../proto/common/pause.ts';
import type { Call } from '../../proto/rpc/local.ts';
import type { Topic } from '../store/messages.ts';
import type { Store } from '../store/types.ts';

/** In milliseconds. Source: runners.proto. */
const WAIT_MAX_MS = 25_000;
/** In milliseconds: the answer is sent before the deadline of the call. */
const ANSWER_MARGIN_MS = 500;

export type PollOptions<T> = {
  /** By performance.now(): see waitUntil. */
  until: number;
  isDone: (found: T) => boolean;
  /** Aborts when core closes or the caller disconnects: reading stops. */
  signal: AbortSignal;
  /** Milliseconds after which `look` runs again without a change. */
  againMs?: (found: T) => number;
};

/** End of a call's wait, by performance.now(): as requested, and before the deadline. */
export function waitUntil(
  { deadline }: Pick<Call, 'deadline'>,
  waitMs: number,
  maxMs = WAIT_MAX_MS,
): number {
  const at = performance.now();
  return at + Math.min(waitMs, maxMs, Math.max(0, deadline - at - ANSWER_MARGIN_MS));
}

/** The last result of `look`: it is final, the wait is over, or the signal aborted. */
export async function longPoll<T>(
  store: Pick<Store, 'onWake'>,
  topic: Topic,
  look: () => Promise<T>,
  { until, isDone, signal, againMs }: PollOptions<T>,
): Promise<T> {
  for (;;) {
    // Subscribes before reading, so that no change in between is missed.
    using wake = listen(store, topic, signal);
    const found = await look();
    const leftMs = until - performance.now();
    if (isDone(found) || leftMs <= 0 || signal.aborted) return found;
    const pauseMs = Math.max(1, Math.min(leftMs, againMs?.(found) ?? leftMs));
    await pause(pauseMs, wake.signal);
    if (signal.aborted) return found;
  }
}

/** A signal that aborts when the topic changes, or with the other signal. */
function listen(
  store: Pick<Store, 'onWake'>,
  topic: Topic,
  over: AbortSignal,
): Disposable & { signal: AbortSignal } {
  const woken = new AbortController();
  const stop = store.onWake(topic, () => woken.abort());
  return { signal: AbortSignal.any([woken.signal, over]), [Symbol.dispose]: stop };
}
