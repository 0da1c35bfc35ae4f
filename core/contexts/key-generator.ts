/**
 * The thread of key pairs, seen from outside. One pair at a time; the death of the thread settles
 * whoever waits.
 */
import { Worker } from 'node:worker_threads';
import { moduleCacheEnv } from '../../proto/common/compile-cache.ts';
import type { KeyPair } from './key-thread.ts';

export type { KeyPair } from './key-thread.ts';

export type Maker = AsyncDisposable & { make(): Promise<KeyPair> };

/** Starts the thread. It does not keep the process alive. */
export function openMaker(): Maker {
  const worker = new Worker(new URL('./key-thread.ts', import.meta.url), {
    env: moduleCacheEnv(),
    execArgv: [], // what was preloaded into the service is not for a thread
  });
  worker.unref();
  return {
    make() {
      return new Promise((resolve, reject) => {
        const settle = (then: () => void) => {
          worker.off('message', made).off('error', failed).off('exit', ended);
          then();
        };
        const made = (pair: KeyPair) => settle(() => resolve(pair));
        const failed = (error: Error) => settle(() => reject(error));
        const ended = () => settle(() => reject(new Error('the thread of key pairs ended')));
        worker.on('message', made).on('error', failed).on('exit', ended);
        worker.postMessage('make');
      });
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}
