/**
 * Runs an operation again after it failed, with a growing pause between two attempts. Only for
 * operations that may run twice without a second effect.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export type RetryOptions = {
  /** The pause after the first failure; each further pause is twice as long. */
  firstMs: number;
  /** The longest pause. */
  maxMs: number;
  /** Of all pauses together; absent: until the signal aborts. */
  limitMs?: number;
  /** Whether another attempt may succeed. */
  isRetryable(error: unknown): boolean;
  /** Called before each pause. */
  onRetry?(error: unknown): void;
  /** Aborts the pauses. An attempt in progress needs the signal itself. */
  signal?: AbortSignal | undefined;
};

/**
 * Resolves with the result of the first attempt that succeeds. Rejects with the error of the last
 * attempt: it is not retryable, the pauses have reached their limit, or the signal has aborted.
 */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { maxMs, limitMs = Number.POSITIVE_INFINITY, isRetryable, onRetry, signal } = options;
  let pauseMs = Math.min(options.firstMs, maxMs);
  let leftMs = limitMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (signal?.aborted || leftMs <= 0 || !isRetryable(error)) throw error;
      onRetry?.(error);
      const isAborted = await paused(Math.min(pauseMs, leftMs), signal);
      if (isAborted) throw error;
      leftMs -= pauseMs;
      pauseMs = Math.min(pauseMs * 2, maxMs);
    }
  }
}

/** True when the signal aborted the pause. */
async function paused(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  return await sleep(ms, false, { signal }).catch(() => true);
}
