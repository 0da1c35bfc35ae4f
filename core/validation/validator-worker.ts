/**
 * One thread that runs checks, one at a time. A check that exceeds its CPU time, or the thread's
 * memory, ends the thread; the next check starts another.
 *   closed --run--> starting --ready--> running --result--> idle --run--> running
 *   running --time or memory exceeded--> closed
 */
import { Worker } from 'node:worker_threads';
import { moduleCacheEnv } from '../../proto/common/compile-cache.ts';
import { limitCpu } from '../../proto/common/cpu-clock.ts';
import { must } from '../../proto/common/must.ts';
import { fromPlain } from '../store/messages.ts';
import type { Check, CheckAnswer } from './validator-thread.ts';

const HEAP_MAX_MB = 256;

/** The check exceeded its limits, and the thread was ended. */
export class CheckTimeoutError extends Error {}

export type ValidatorWorker = {
  /** Runs after the previous check. Throws CheckTimeoutError, or the error of the check. */
  run(check: Check): Promise<unknown>;
  /** Ends the thread; a check that runs is rejected with this error. */
  close(error: Error): Promise<void>;
};

/** The thread starts with the first check. */
export function openValidatorWorker(checkMaxMs: number): ValidatorWorker {
  let worker: Worker | undefined;
  let isReady = false;
  let running: (PromiseWithResolvers<unknown> & { check: Check; limit?: Disposable }) | undefined;

  function settle(end: (waiter: PromiseWithResolvers<unknown>) => void): void {
    const ended = running;
    running = undefined;
    ended?.limit?.[Symbol.dispose]();
    if (ended) end(ended);
  }

  async function stop(error: Error): Promise<void> {
    const stopped = worker;
    worker = undefined;
    isReady = false;
    settle(({ reject }) => reject(error));
    await stopped?.terminate();
  }

  function post(): void {
    const current = running;
    if (!current || !isReady) return;
    const thread = must(worker, 'a thread that is ready');
    // A result that arrived while the main thread was busy counts before the time limit.
    const over = () =>
      setImmediate(() => running === current && void stop(new CheckTimeoutError('of CPU time')));
    current.limit = limitCpu(thread, checkMaxMs, over);
    thread.postMessage(current.check);
  }

  function open(): Worker {
    const opened = new Worker(new URL('./validator-thread.ts', import.meta.url), {
      env: moduleCacheEnv(),
      execArgv: [], // the program's own flags, such as --input-type, are not for a thread
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB },
    });
    opened.unref();
    opened.on('message', (answer: CheckAnswer) => {
      if (opened !== worker) return;
      switch (answer.kind) {
        case 'ready':
          isReady = true;
          post();
          break;
        case 'done':
          settle(({ resolve }) => resolve(answer.result));
          break;
        case 'failed':
          settle(({ reject }) => reject(fromPlain(answer.error)));
      }
    });
    // Out of memory, or ended by the check; before it is ready, the thread cannot start.
    opened.on('error', (error) => {
      if (opened !== worker) return;
      void stop(isReady ? new CheckTimeoutError('of memory', { cause: error }) : (error as Error));
    });
    return opened;
  }

  return {
    run(check) {
      running = { ...Promise.withResolvers<unknown>(), check };
      const { promise } = running;
      worker ??= open();
      post();
      return promise;
    },
    close: stop,
  };
}
