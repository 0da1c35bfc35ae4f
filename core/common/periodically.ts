/**
 * Periodic work while core runs. The period is a pause between two runs, so that slow runs never
 * overlap. A failed run is logged, and the next one follows as usual.
 */
import type { Log } from '../../proto/common/log.ts';
import { type Pause, pause as pauseReal } from '../../proto/common/pause.ts';

type Options = {
  log: Log;
  /** The log message of a run that failed. */
  failure: string;
  /** In milliseconds, before the first run. Without it one period. */
  firstMs?: number | undefined;
  /** For tests. */
  pause?: Pause | undefined;
};

/** Runs every `ms` until disposed. Disposal waits for a run in progress. */
export function periodically(
  ms: number,
  run: (signal: AbortSignal) => void | Promise<void>,
  { log, failure, firstMs = ms, pause = pauseReal }: Options,
): AsyncDisposable {
  const closing = new AbortController();
  const { signal } = closing;

  async function repeat(): Promise<void> {
    await pause(firstMs, signal);
    while (!signal.aborted) {
      try {
        await run(signal);
      } catch (error) {
        log.error({ err: error }, failure);
      }
      await pause(ms, signal);
    }
  }

  const running = repeat();
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      await running;
    },
  };
}
