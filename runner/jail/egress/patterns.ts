/**
 * Matches hosts against the `domainPattern`s of sessions' proxies, in one thread for all sessions.
 * Each session has one pending match at a time, so sessions alternate. A match that uses too much
 * CPU time is ended with its thread and rejects; the next match starts a new thread.
 */
import { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { limitCpu } from '../../../proto/common/cpu-clock.ts';
import { patternProblem } from '../../../proto/network/patterns.ts';
import { type Pattern, PatternTimeout, type SessionPatterns } from './routes.ts';

/** Ours, of CPU time: proto/network/patterns.ts limits a compilation and a match to about 20 ms. */
const QUESTION_MAX_MS = 2_000;
/** Ours, by pattern: a page loads from a few dozen hosts. */
const MATCHES_MAX = 200;
const HEAP_MAX_MB = 128;

export type Question = { text: string; host: string };
type Waiter = Question & { resolve(isFound: boolean): void; reject(error: Error): void };

export type Patterns = { ofSession(): SessionPatterns };

/** The thread starts with the first match. Only a pending match keeps the process alive. */
export function openPatterns({ questionMaxMs = QUESTION_MAX_MS } = {}): Patterns {
  const thread = new Thread(questionMaxMs);
  return {
    ofSession() {
      let turn: Promise<unknown> = Promise.resolve();
      const ask = (question: Question): Promise<boolean> => {
        const answer = turn.then(() => thread.ask(question));
        turn = answer.catch(() => undefined);
        return answer;
      };
      return (text) => {
        const problem = patternProblem(text);
        if (problem !== undefined) throw new TypeError(`domainPattern ${problem}`);
        return remembering((host) => ask({ text, host }));
      };
    },
  };
}

/** Caches the most recent results. */
function remembering(ask: (host: string) => Promise<boolean>): Pattern {
  const results = new LRUCache<string, boolean>({ max: MATCHES_MAX });
  return {
    async find(host) {
      const result = results.get(host) ?? (await ask(host));
      results.set(host, result);
      return result;
    },
  };
}

class Thread {
  readonly #questionMaxMs: number;
  readonly #waiting: Waiter[] = [];
  #worker: Worker | undefined;
  #isReady = false;
  #running: { waiter: Waiter; limit: Disposable } | undefined;

  constructor(questionMaxMs: number) {
    this.#questionMaxMs = questionMaxMs;
  }

  ask(question: Question): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    this.#waiting.push({ ...question, resolve, reject });
    this.#next();
    return promise;
  }

  #next(): void {
    if (this.#running) return;
    if (this.#waiting.length === 0) {
      this.#worker?.unref();
      return;
    }
    this.#worker ??= this.#open();
    this.#worker.ref();
    const waiter = this.#isReady ? this.#waiting.shift() : undefined;
    if (waiter === undefined) return; // called again after the thread's first message
    const over = () => this.#fail(new PatternTimeout('a domainPattern took too much CPU time'));
    const limit = limitCpu(this.#worker, this.#questionMaxMs, over);
    this.#running = { waiter, limit };
    const { text, host } = waiter;
    this.#worker.postMessage({ text, host } satisfies Question);
  }

  #open(): Worker {
    const worker = new Worker(new URL('./patterns-thread.ts', import.meta.url), {
      execArgv: [], // modules preloaded into the runner are not for a thread
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB },
    });
    worker.on('message', (answer: 'ready' | boolean) => {
      if (worker !== this.#worker) return;
      if (answer === 'ready') this.#isReady = true;
      else this.#settle(({ resolve }) => resolve(answer));
      this.#next();
    });
    worker.on('error', (error) => {
      if (worker === this.#worker) this.#fail(error);
    });
    return worker;
  }

  #settle(end: (waiter: Waiter) => void): void {
    const running = this.#running;
    this.#running = undefined;
    running?.limit[Symbol.dispose]();
    if (running) end(running.waiter);
  }

  /** Fails the current match, or the first pending one when the thread cannot start. */
  #fail(error: Error): void {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#isReady = false;
    void worker?.terminate();
    if (this.#running) this.#settle(({ reject }) => reject(error));
    else this.#waiting.shift()?.reject(error);
    this.#next();
  }
}
