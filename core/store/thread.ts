/**
 * The main side of the store: starts the one thread that owns the database and turns each operation
 * into a message. An operation resolves after its commit. When a commit fails or the thread ends,
 * all pending operations fail with OUTCOME_UNKNOWN and `onFatal` is called once: no later answer
 * could be trusted, so the process must end.
 */
import { Worker } from 'node:worker_threads';
import { ConfigError } from '../../proto/common/env.ts';
import { unknownOutcome } from '../../proto/rpc/connection-errors.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import {
  type Answer,
  type FromThread,
  fromPlain,
  type ThreadOptions,
  type Topic,
  type ToThread,
} from './messages.ts';
import { openSyncs } from './syncs.ts';
import type { Store } from './types.ts';

/**
 * Operations that may wait for the thread. Ours: some 100 ms of work; further calls fail with
 * CORE_UNAVAILABLE.
 */
const WAITING_MAX = 4_096;

export type StoreOptions = ThreadOptions & {
  /** Called once, with what failed. The process ends with code 70. */
  onFatal: (error: Error) => void;
};

type Waiter = { resolve: (value: unknown) => void; reject: (error: Error) => void };

/**
 * Opens the data directory. Throws ConfigError when another process holds it or its schema is newer
 * than this code.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { onFatal, ...workerData } = options;
  const worker = new Worker(new URL('./sqlite/thread.ts', import.meta.url), {
    workerData,
    execArgv: [], // without the program's own flags, such as --input-type
  });
  const thread = new Thread(worker, onFatal);
  const operations = await thread.ready;
  const methods = operations.map((op) => [op, (...args: unknown[]) => thread.call(op, args)]);
  return {
    ...Object.fromEntries(methods),
    onWake: (topic: Topic, listener: () => void) => thread.onWake(topic, listener),
    snapshot: (path: string) => thread.snapshot(path),
    syncP95Ms: () => thread.syncP95Ms(),
    serverTime: () => undefined,
    isLeader: () => true, // the only process on its directory
    lineLostMs: () => 0,
    sendToCores() {},
    onCoreMessage() {},
    close: () => thread.close(),
  } as Store;
}

class Thread {
  /** The names of the engine's operations. */
  readonly ready: Promise<string[]>;
  readonly #worker: Worker;
  readonly #onFatal: (error: Error) => void;
  readonly #syncs = openSyncs();
  readonly #waiting = new Map<number, Waiter>();
  readonly #listeners = new Map<Topic, Set<() => void>>();
  readonly #opening = Promise.withResolvers<string[]>();
  readonly #ended = Promise.withResolvers<void>();
  #nextId = 0;
  /** Clock steps that the times of new operations include. */
  #step = 0;
  #isReady = false;
  #state: 'open' | 'closing' | 'dead' = 'open';

  constructor(worker: Worker, onFatal: (error: Error) => void) {
    this.ready = this.#opening.promise;
    this.#worker = worker;
    this.#onFatal = onFatal;
    worker.on('message', (message: FromThread) => this.#receive(message));
    worker.on('error', (error) =>
      this.#die(error instanceof Error ? error : new Error(`${error}`)),
    );
    worker.on('exit', () => {
      if (this.#state === 'open') this.#die(new Error('the database thread ended'));
      this.#ended.resolve();
    });
  }

  call(op: string, args: unknown[]): Promise<unknown> {
    if (op === 'moveTimes') return this.#move(args);
    return this.#ask((id) => this.#request(id, op, args));
  }

  #request(id: number, op: string, args: unknown[]): ToThread {
    return { kind: 'op', id, op, args, step: this.#step };
  }

  /** The caller's clock has taken the step, and undoes it after a failure before its next wait. */
  async #move(args: unknown[]): Promise<unknown> {
    this.#step += 1;
    try {
      const isUrgent = true;
      return await this.#ask((id) => this.#request(id, 'moveTimes', args), isUrgent);
    } catch (error) {
      setImmediate(() => {
        this.#step -= 1;
      });
      throw error;
    }
  }

  syncP95Ms(): number | undefined {
    return this.#syncs.p95Ms();
  }

  snapshot(path: string): Promise<unknown> {
    return this.#ask((id) => ({ kind: 'snapshot', id, path }));
  }

  #ask(message: (id: number) => ToThread, isUrgent = false): Promise<unknown> {
    if (this.#state === 'dead') return Promise.reject(unknownOutcome());
    if (this.#state === 'closing') return Promise.reject(new Fault('DRAINING', 'Shutting down.'));
    if (this.#waiting.size >= WAITING_MAX && !isUrgent) {
      return Promise.reject(new Fault('CORE_UNAVAILABLE', 'The service is overloaded.'));
    }
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject });
    this.#worker.postMessage(message(id));
    return promise;
  }

  onWake(topic: Topic, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      // A topic may be of one invocation: without listeners it is removed.
      if (listeners.size === 0 && this.#listeners.get(topic) === listeners) {
        this.#listeners.delete(topic);
      }
    };
  }

  async close(): Promise<void> {
    if (this.#state === 'open') {
      this.#state = 'closing';
      this.#worker.postMessage({ kind: 'close' });
    }
    await this.#ended.promise;
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'ready':
        this.#isReady = true;
        this.#opening.resolve(message.operations);
        return;
      case 'refused':
        this.#state = 'dead';
        this.#opening.reject(new ConfigError(message.message));
        return;
      case 'answers':
        if (message.syncMs !== undefined) this.#syncs.add(message.syncMs);
        for (const answer of message.answers) this.#settle(answer);
        for (const topic of message.wakes) this.#wake(topic);
        return;
      case 'fatal':
        this.#die(new Error(message.message));
        return;
      case 'closed':
        return;
    }
  }

  #settle(answer: Answer): void {
    const waiter = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ('error' in answer) waiter?.reject(fromPlain(answer.error));
    else waiter?.resolve(answer.value);
  }

  #wake(topic: Topic): void {
    for (const listener of this.#listeners.get(topic) ?? []) listener();
  }

  #die(error: Error): void {
    if (this.#state === 'dead') return;
    this.#state = 'dead';
    for (const waiter of this.#waiting.values()) waiter.reject(unknownOutcome());
    this.#waiting.clear();
    if (this.#isReady) this.#onFatal(error);
    else this.#opening.reject(error); // openStore's caller reports the reason
  }
}
