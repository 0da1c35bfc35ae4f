/** Starts the lease thread. */
import { Worker } from 'node:worker_threads';
import { moduleCacheEnv } from '../../proto/common/compile-cache.ts';
import type { Config } from '../config.ts';
import type { LeaseListener, LeaseThread } from './leases.ts';
import type { FromThread } from './renewals.ts';

type Settings = {
  /** How the thread reaches core, and what it logs. */
  config: Pick<Config, 'core' | 'coreTls' | 'token' | 'logLevel'>;
  runner: { runnerId: string; instanceId: string };
  leaseMs: number;
};
export type LeaseThreadData = ReturnType<typeof dataOf>;

export function openLeaseThread(
  settings: Settings,
  { receive, ended }: LeaseListener,
): LeaseThread {
  const worker = new Worker(new URL('./lease-thread.ts', import.meta.url), {
    workerData: dataOf(settings),
    env: moduleCacheEnv(),
    execArgv: [], // modules that are preloaded into the runner are not for a thread
  });
  worker.on('message', (message: FromThread) => receive(message));
  let cause: unknown;
  worker.on('error', (error) => {
    cause = error;
  });
  const exited = (code: number): void => {
    ended(new Error(`the lease thread ended with code ${code}`, { cause }));
  };
  worker.once('exit', exited);
  return {
    send: (message) => worker.postMessage(message),
    async [Symbol.asyncDispose]() {
      worker.off('exit', exited);
      await worker.terminate();
    },
  };
}

function dataOf({ config, runner, leaseMs }: Settings) {
  const { core, coreTls, token, logLevel } = config;
  // a thread cannot see whether stderr is a terminal
  const isForPeople = process.stderr.isTTY === true;
  return { core, coreTls, token, logLevel, runner, leaseMs, isForPeople };
}
