/**
 * Checks of what tenants wrote against what tenants wrote, in a thread and in bounded time. One
 * check at a time, projects in turn; one that is not over in time ends the thread, and its project
 * waits before its next one is tried: a hostile project takes a small share of one core, and
 * nothing from the thread that serves everybody.
 *   waiting --turn--> running --verdict--> (answered);  running --time over--> (refused)
 */
import { Worker } from 'node:worker_threads';
import { asFault, Fault, invalidField } from '../proto/errors.ts';
import { moduleCacheEnv } from '../proto/module-cache.ts';
import type { Check, Params, Verdict } from './checks/thread.ts';
import type { Checked } from './manifests.ts';
import { fromPlain } from './store/messages.ts';

/** Ours: a check takes some microseconds, and a first compilation milliseconds. */
const CHECK_MAX_MS = 1_000;
/** Ours: a project whose check was ended has at most a tenth of the thread. */
const PAUSE_MS = 10_000;
/** Ours: checks of one project that may wait. */
const WAITING_MAX = 1_000;
const HEAP_MAX_MB = 256;

export type Checks = AsyncDisposable & {
  /** The params as they hold, with defaults filled in. Throws INVALID_FIELD. */
  params(
    version: { id: string; projectId: string; paramsSchema: string | null },
    params: Params,
  ): Promise<Params>;
  /** What a build of the project found. */
  manifests(
    projectId: string,
    manifests: Extract<Check, { kind: 'manifests' }>['manifests'],
  ): Promise<Checked>;
};

type Waiter = {
  projectId: string;
  check: Check;
  resolve(verdict: Verdict): void;
  reject(error: Error): void;
};

/** The thread starts with the first check. */
export function openChecks({ checkMaxMs = CHECK_MAX_MS, pauseMs = PAUSE_MS } = {}): Checks {
  const turns = new Turns(checkMaxMs, pauseMs);
  return {
    async params({ id, projectId, paramsSchema }, params) {
      if (paramsSchema === null) return params;
      const version = { id, paramsSchema };
      const verdict = await turns.ask(projectId, { kind: 'params', version, params });
      if (verdict.kind !== 'params') throw new Error('an answer to another question');
      return verdict.params;
    },
    async manifests(projectId, manifests) {
      const verdict = await turns.ask(projectId, { kind: 'manifests', manifests });
      if (verdict.kind !== 'manifests') throw new Error('an answer to another question');
      return verdict.checked;
    },
    [Symbol.asyncDispose]: () => turns.close(),
  };
}

class Turns {
  readonly #checkMaxMs: number;
  readonly #pauseMs: number;
  /** By project; the first key has the next turn. */
  readonly #waiting = new Map<string, Waiter[]>();
  /** Projects whose check was ended, and until when they wait. */
  readonly #paused = new Map<string, number>();
  #worker: Worker | undefined;
  #isReady = false;
  #running: { waiter: Waiter; timer: NodeJS.Timeout } | undefined;
  #isClosed = false;

  constructor(checkMaxMs: number, pauseMs: number) {
    this.#checkMaxMs = checkMaxMs;
    this.#pauseMs = pauseMs;
  }

  ask(projectId: string, check: Check): Promise<Verdict> {
    if (this.#isClosed) return Promise.reject(new Fault('DRAINING', 'Shutting down.'));
    // A build is seldom, and has no second chance.
    const isPaused = (this.#paused.get(projectId) ?? 0) > performance.now();
    if (isPaused && check.kind === 'params') return Promise.reject(tooSlow());
    if (!isPaused) this.#paused.delete(projectId);
    const own = this.#waiting.get(projectId) ?? [];
    if (own.length >= WAITING_MAX) {
      return Promise.reject(new Fault('CORE_UNAVAILABLE', 'The service is overloaded.'));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Verdict>();
    own.push({ projectId, check, resolve, reject });
    this.#waiting.set(projectId, own);
    this.#next();
    return promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const fault = new Fault('DRAINING', 'Shutting down.');
    this.#settle(({ reject }) => reject(fault));
    const worker = this.#worker;
    this.#giveUp(fault);
    await worker?.terminate();
  }

  /** Nobody who waits will be served: the thread cannot start, or core closes. */
  #giveUp(error: unknown): void {
    const left = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    this.#worker = undefined;
    this.#isReady = false;
    for (const { reject } of left) reject(asFault(error));
  }

  #next(): void {
    if (this.#running || this.#isClosed || this.#waiting.size === 0) return;
    this.#worker ??= this.#open();
    if (!this.#isReady) return; // its first message comes back here
    const [turn] = this.#waiting;
    const [projectId, own] = turn ?? [];
    const waiter = own?.shift();
    if (projectId === undefined || own === undefined || waiter === undefined) return;
    this.#waiting.delete(projectId);
    if (own.length > 0) this.#waiting.set(projectId, own); // behind the others
    // A verdict that came while this thread was busy is taken before the time is judged.
    const over = () => setImmediate(() => this.#running?.waiter === waiter && this.#fail());
    this.#running = { waiter, timer: setTimeout(over, this.#checkMaxMs) };
    this.#worker.postMessage(waiter.check);
  }

  #open(): Worker {
    const worker = new Worker(new URL('./checks/thread.ts', import.meta.url), {
      env: moduleCacheEnv(),
      execArgv: [], // the program's own flags, such as --input-type, are not for a thread
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB },
    });
    worker.unref();
    worker.on('message', (verdict: Verdict) => {
      if (worker !== this.#worker) return;
      if (verdict.kind === 'ready') this.#isReady = true;
      else if (verdict.kind === 'failed') {
        this.#settle(({ reject }) => reject(fromPlain(verdict.error)));
      } else this.#settle(({ resolve }) => resolve(verdict));
      this.#next();
    });
    // Out of memory, or ended by what it checked.
    worker.on('error', (error) => {
      if (worker !== this.#worker) return;
      if (this.#running) this.#fail();
      else this.#giveUp(error);
    });
    return worker;
  }

  #settle(end: (waiter: Waiter) => void): void {
    const running = this.#running;
    this.#running = undefined;
    clearTimeout(running?.timer);
    if (running) end(running.waiter);
  }

  /** The check that runs is refused, its project paused, and the thread made anew. */
  #fail(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#isReady = false;
    void worker?.terminate();
    this.#settle(({ projectId, reject }) => {
      this.#paused.set(projectId, performance.now() + this.#pauseMs);
      const own = this.#waiting.get(projectId) ?? [];
      const builds = own.filter(({ check }) => check.kind === 'manifests');
      this.#waiting.delete(projectId);
      if (builds.length > 0) this.#waiting.set(projectId, builds);
      for (const waiter of own) if (!builds.includes(waiter)) waiter.reject(tooSlow());
      reject(tooSlow());
    });
    this.#next();
  }
}

function tooSlow(): Fault {
  return invalidField(
    'params',
    'took too long to check: the schema of the function is too complex.',
  );
}
