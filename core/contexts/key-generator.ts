/** Generates RSA key pairs in a thread of its own, one at a time. */
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { moduleCacheEnv } from '../../proto/common/compile-cache.ts';
import type { KeyPair } from './key-thread.ts';

export type KeyGenerator = AsyncDisposable & {
  /** Rejects when the thread ends before the pair is complete. */
  generate(): Promise<KeyPair>;
};

/** Disposal ends the thread. An idle thread does not keep the process alive. */
export function openKeyGenerator(): KeyGenerator {
  const pool = new Piscina<undefined, KeyPair>({
    filename: fileURLToPath(new URL('./key-thread.ts', import.meta.url)),
    maxThreads: 1,
    atomics: 'disabled',
    recordTiming: false,
    env: moduleCacheEnv(),
    execArgv: [], // modules that were preloaded into the service are not for a thread
  });
  return {
    generate: () => pool.run(undefined),
    [Symbol.asyncDispose]: () => pool.destroy(),
  };
}
