/**
 * Runs an operation again after it failed, with a growing pause between two attempts. Only for
 * operations that may run twice without a second effect.
 */
import { pause } from './pause.ts';

export type RetryOptions = {
  /** The pause after the first failure; each further pause is twice as long. */
  firstMs: number;
  /** The longest pause. */
  maxMs: number;
  /** Of all pauses together; absent: until the signal aborts. */
  limitMs?: number;
  /** After an attempt that lasted this long the pauses begin again at the first one. */
  stableMs?: number;
  /** Whether another attempt may succeed. */
  isRetryable(error: unknown): boolean;
  /** Called before each pause. */
  onRetry?(error: unknown, pauseMs: number): void;
  /** Aborts the pauses. An attempt in progress needs the signal itself. */
  signal?: AbortSignal | undefined;
};

/**
 * Resolves with the result of the first attempt that succeeds. Rejects with the error of the last
 * attempt: it is not retryable, the pauses have reached their limit, or the signal has aborted.
 */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { maxMs, limitMs = Infinity, stableMs = Infinity } = options;
  const { isRetryable, onRetry, signal } = options;
  const firstMs = Math.min(options.firstMs, maxMs);
  let pauseMs = firstMs;
  let leftMs = limitMs;
  for (;;) {
    const startedAt = performance.now();
    try {
      return await attempt();
    } catch (error) {
      if (signal?.aborted || leftMs <= 0 || !isRetryable(error)) throw error;
      if (performance.now() - startedAt > stableMs) pauseMs = firstMs;
      onRetry?.(error, pauseMs);
      await pause(Math.min(pauseMs, leftMs), signal);
      if (signal?.aborted) throw error;
      leftMs -= pauseMs;
      pauseMs = Math.min(pauseMs * 2, maxMs);
    }
  }
}
