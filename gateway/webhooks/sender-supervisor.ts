/**
 * The main side of the sender: supervises its thread, which starts for the first delivery that is
 * due, as most services have no webhook. waiting -> running -> (crash) -> pause -> running;
 * any -> closing -> closed. A crashed thread loses its attempts: its pending calls finish first,
 * then the next thread takes over its claims. No delivery is lost; one may be sent twice, with the
 * same id.
 */
import type { BlockList } from 'node:net';
import { Worker } from 'node:worker_threads';
import { moduleCacheEnv } from '../../proto/common/compile-cache.ts';
import type { Log } from '../../proto/common/log.ts';
import { retry } from '../../proto/common/retry.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { Budget } from './attempt.ts';
import { type Bridge, openBridge } from './core-bridge.ts';
import type { FromThread, ThreadOptions, ToThread } from './messages.ts';

/**
 * In milliseconds: deadlines of attempts in flight and of the whole thread at close. An answer has
 * 15 s and its body 2 s more. Ours: within the drain of the gateway.
 */
const ATTEMPTS_END_MS = 17_000;
const CLOSE_MAX_MS = 22_000;
/** In milliseconds: back-off before another thread is started, doubling between these. Ours. */
const RESTART_MIN_MS = 200;
const RESTART_MAX_MS = 10_000;
/** In milliseconds: a thread that ran this long was healthy and resets the back-off. */
const WELL_MS = 60_000;
/** In MiB. Ours: 64 attempts use 5; an attack or a leak ends the thread, not the process. */
const HEAP_MAX_MB = 256;

export type DispatcherOptions = {
  client: Clients['deliveries'];
  /** The gateway token. */
  token: string;
  /**
   * One per gateway and stable over restarts: claims of an earlier start are taken over at once.
   */
  senderId: string;
  /** Allowed addresses in addition to public ones. */
  allow: BlockList;
  /** PEM text: certificate authorities in addition to the system's. */
  ca?: string | undefined;
  log: Log;
  /** For tests. */
  budget?: Budget;
  dnsServers?: readonly string[];
  attemptsEndMs?: number;
  onThread?: (worker: Worker) => void;
};

export type Dispatcher = AsyncDisposable & {
  /** Stops claiming; attempts finish within a limit. A second call waits for the first. */
  close(): Promise<void>;
};

/** One thread after the other, until closed. */
export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const { log, attemptsEndMs: maxMs = ATTEMPTS_END_MS } = options;
  const closing = new AbortController();
  let worker: Worker | undefined;
  let hasRun = false;
  const run = async (): Promise<void> => {
    const bridge = openBridge(options, (message) => worker?.postMessage(message));
    try {
      if (!hasRun) await bridge.firstDue(closing.signal);
      if (closing.signal.aborted) return;
      hasRun = true;
      worker = openThread(options);
      options.onThread?.(worker);
      await served(worker, bridge);
    } finally {
      await bridge.end();
      worker = undefined;
    }
    throw new Error('the sender thread ended by itself');
  };
  const supervised = retry(run, {
    firstMs: RESTART_MIN_MS,
    maxMs: RESTART_MAX_MS,
    stableMs: WELL_MS,
    isRetryable: () => true,
    onRetry: (error, waitMs) => {
      log.error({ err: error, waitMs }, 'the sender thread crashed; restarting it');
    },
    signal: closing.signal,
  }).catch(() => undefined); // the thread's end after close

  async function close(): Promise<void> {
    if (!closing.signal.aborted) {
      closing.abort();
      worker?.postMessage({ kind: 'close', maxMs } satisfies ToThread);
    }
    const late = setTimeout(() => void worker?.terminate(), CLOSE_MAX_MS);
    await supervised;
    clearTimeout(late);
  }
  return { close, [Symbol.asyncDispose]: close };
}

function openThread({ allow, ca, budget, dnsServers }: DispatcherOptions): Worker {
  return new Worker(new URL('./sender-thread.ts', import.meta.url), {
    workerData: { allow, ca, budget, dnsServers } satisfies ThreadOptions,
    env: moduleCacheEnv(), // no variables of the service, proxies included
    execArgv: [], // the program's own flags, such as --input-type, are not for a thread
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB },
  });
}

/** Serves the requests of the thread until it exits; throws its error. */
async function served(worker: Worker, bridge: Bridge): Promise<void> {
  worker.on('message', (message: FromThread) => bridge.receive(message));
  const errors: unknown[] = [];
  worker.on('error', (error) => errors.push(error));
  await new Promise((resolve) => worker.once('exit', resolve));
  if (errors.length > 0) throw errors[0];
}
