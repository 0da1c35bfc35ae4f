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
  /** The wait ends before its deadline, and when its caller disconnects. */
  call: Pick<Call, 'deadline' | 'signal'>;
  /** Aborts when core closes: waiting calls are answered at once. */
  closing: AbortSignal;
  waitMs: number;
  maxMs?: number;
  isDone: (found: T) => boolean;
  /** Milliseconds after which `look` runs again without a change. */
  againMs?: (found: T) => number;
};

/** The last result of `look`: it is final, the wait is over, or a signal aborted. */
export async function longPoll<T>(
  store: Pick<Store, 'onWake'>,
  topic: Topic,
  look: () => Promise<T>,
  { call, closing, waitMs, maxMs, isDone, againMs }: PollOptions<T>,
): Promise<T> {
  const until = waitUntil(call, waitMs, maxMs);
  const over = AbortSignal.any([call.signal, closing]);
  for (;;) {
    const woken = new AbortController();
    // Subscribes before reading, so that no change in between is missed.
    using _ = { [Symbol.dispose]: store.onWake(topic, () => woken.abort('woken')) };
    const found = await look();
    const leftMs = until - performance.now();
    if (isDone(found) || leftMs <= 0 || over.aborted) return found;
    const pauseMs = Math.max(1, Math.min(leftMs, againMs?.(found) ?? leftMs));
    await pause(pauseMs, AbortSignal.any([woken.signal, over]));
    if (over.aborted) return found;
  }
}

/** End of a call's wait, by performance.now(): as requested, and before the deadline. */
export function waitUntil(
  { deadline }: Pick<Call, 'deadline'>,
  waitMs: number,
  maxMs = WAIT_MAX_MS,
): number {
  const at = performance.now();
  return at + Math.min(waitMs, maxMs, Math.max(0, deadline - at - ANSWER_MARGIN_MS));
}
