/** A wait that a signal may end. */

export type Pause = (ms: number, signal: AbortSignal) => Promise<void>;

/**
 * Resolves after so many milliseconds, or when the signal aborts. Node's own rejects then, with an
 * error whose stack takes longer than the rest: long polls end many pauses early.
 */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = (): void => resolve();
  signal?.addEventListener('abort', end, { once: true });
  await promise;
  clearTimeout(timer);
  signal?.removeEventListener('abort', end);
}
