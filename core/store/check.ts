/**
 * Looks whether the database is whole, in a thread of its own, while it is in use or not. Table by
 * table: a reader that stays long would keep the log from being emptied.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

export type Checking = AsyncDisposable & {
  /**
   * Sentences of SQLite; empty when it is whole, or the end came first. Rejects when the check
   * itself failed, which says nothing about the database.
   */
  problems: Promise<string[]>;
};

export function startCheck(dir: string): Checking {
  const worker = new Worker(new URL('./sqlite/check-thread.ts', import.meta.url), {
    workerData: { dir },
    execArgv: [], // the program's own flags are not for a thread
  });
  worker.unref();
  const over = new AbortController();
  const said = once(worker, 'message', { signal: over.signal }) as Promise<[string[]]>;
  return {
    problems: said.then(
      ([problems]) => problems,
      (error: Error) => {
        if (over.signal.aborted) return [];
        throw error;
      },
    ),
    async [Symbol.asyncDispose]() {
      over.abort();
      await worker.terminate();
    },
  };
}
