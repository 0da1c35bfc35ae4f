/**
 * The main side of the sender: supervises its thread and calls core for it, with the token and the
 * name that the thread does not have. starting -> running -> (crash) -> waiting -> starting; any ->
 * closing -> closed. A crashed thread loses its attempts: its pending calls finish first, then the
 * next thread, with a later instance id, takes over its claims. No delivery is lost; one may be
 * sent twice, with the same id.
 */
import type { BlockList } from 'node:net';
import { Worker } from 'node:worker_threads';
import { moduleCacheEnv } from '../../proto/common/compile-cache.ts';
import type { Log } from '../../proto/common/log.ts';
import { retry } from '../../proto/common/retry.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { Budget } from './attempt.ts';
import { type Calls, openCalls } from './core-bridge.ts';
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
/**
 * In MiB: 64 attempts use about 5 MiB. Growth beyond this is an attack or a leak, and ends the
 * thread instead of the process. Ours.
 */
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
  /**
   * Stops claiming, lets attempts finish within a limit, and reports them. A second call waits for
   * the first.
   */
  close(): Promise<void>;
};

/** Starts the sender. */
export function startDispatcher(options: DispatcherOptions): Dispatcher {
  const keeper = new Keeper(options);
  const close = () => keeper.close();
  return { close, [Symbol.asyncDispose]: close };
}

class Keeper {
  readonly #options: DispatcherOptions;
  readonly #closing = new AbortController();
  readonly #kept: Promise<void>;
  #worker: Worker | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#kept = this.#keep();
  }

  async close(): Promise<void> {
    if (!this.#closing.signal.aborted) {
      this.#closing.abort();
      const { attemptsEndMs = ATTEMPTS_END_MS } = this.#options;
      this.#worker?.postMessage({ kind: 'close', maxMs: attemptsEndMs } satisfies ToThread);
    }
    const late = setTimeout(() => void this.#worker?.terminate(), CLOSE_MAX_MS);
    await this.#kept;
    clearTimeout(late);
  }

  /** Runs one thread after the other, until closed. */
  async #keep(): Promise<void> {
    await retry(() => this.#run(), {
      firstMs: RESTART_MIN_MS,
      maxMs: RESTART_MAX_MS,
      stableMs: WELL_MS,
      isRetryable: () => true,
      onRetry: (error, waitMs) => {
        this.#options.log.error({ err: error, waitMs }, 'the sender thread crashed; restarting it');
      },
      signal: this.#closing.signal,
    }).catch(() => undefined); // the thread's end after close
  }

  /** Runs one thread until it ends; rejects with the cause. */
  async #run(): Promise<never> {
    const { allow, ca, budget, dnsServers, onThread } = this.#options;
    const worker = new Worker(new URL('./sender-thread.ts', import.meta.url), {
      workerData: { allow, ca, budget, dnsServers } satisfies ThreadOptions,
      env: moduleCacheEnv(), // no variables of the service, proxies included
      execArgv: [], // the program's own flags, such as --input-type, are not for a thread
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB },
    });
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    let failure: unknown;
    const calls = openCalls(this.#options, (message) => worker.postMessage(message));
    worker.on('message', (message: FromThread) => this.#receive(message, calls));
    worker.on('error', (error) => {
      failure = error;
    });
    worker.on('exit', () => resolve());
    this.#worker = worker;
    onThread?.(worker);
    await ended;
    this.#worker = undefined;
    await calls.end();
    throw failure ?? new Error('the sender thread ended by itself');
  }

  #receive(message: FromThread, calls: Calls): void {
    switch (message.kind) {
      case 'claim':
        calls.claim(message.id, message.max);
        return;
      case 'report':
        calls.report(message.id, message.reports, message.max);
        return;
      case 'leave':
        calls.leave(message.id);
        return;
      case 'dropped':
        this.#options.log.error(
          { count: message.count },
          'dropped attempt reports that core did not accept in time',
        );
        return;
      case 'closed':
        return;
    }
  }
}
