/**
 * Validates values of tenants against rules of tenants, in threads and in bounded CPU time.
 * Projects share the threads fairly, and each runs one check at a time. A check that exceeds its
 * time ends its thread, and its project pauses: a hostile project takes a small share of one core,
 * and no thread that another project waits for.
 *   waiting --dequeued--> running --result--> (resolved);  running --timeout--> (rejected)
 */

import { jsonProblem } from '../../proto/json/json-scan.ts';
import { asFault, Fault, invalidField } from '../../proto/rpc/errors.ts';
import { openFairQueue } from '../../proto/sharing/fair-queue.ts';
import type { ReadCertificates } from './certificates.ts';
import type { Times } from './cron.ts';
import type { Checked, Manifest } from './manifests.ts';
import type { Params, Schema } from './params-schema.ts';
import { hasPatterns, type Problem, type SessionParams } from './session-params.ts';
import type { Check, Checks } from './validator-thread.ts';
import {
  CheckTimeoutError,
  openValidatorWorker,
  type ValidatorWorker,
} from './validator-worker.ts';

/** Ours: a project holds one at most, so that a second project waits for no check of the first. */
const THREADS = 2;
/** Ours, of CPU time: a check takes some microseconds, and a first compilation milliseconds. */
const CHECK_MAX_MS = 1_000;
/** Ours: a project whose check was ended has at most a tenth of the thread. */
const PAUSE_MS = 10_000;
/** Ours: queued checks of one project. */
const WAITING_MAX = 1_000;

/** Ours, in characters: a scan of them takes about a millisecond. */
const SCANNED_HERE_MAX = 64 << 10;

export type Validator = ReturnType<typeof openValidator>;

type Waiter = PromiseWithResolvers<unknown> & { check: Check };

/** A thread starts with its first check. */
export function openValidator({ checkMaxMs = CHECK_MAX_MS, pauseMs = PAUSE_MS } = {}) {
  const queue = new CheckQueue(checkMaxMs, pauseMs);
  const run = async <K extends Check['kind']>(projectId: string, check: Check & { kind: K }) =>
    // a thread returns what the check of that kind returns
    (await queue.run(projectId, check)) as ReturnType<Checks[K]>;
  return {
    /** The params with defaults filled in. Throws INVALID_FIELD. */
    async params(version: Schema & { projectId: string }, params: Params): Promise<Params> {
      const { id, projectId, paramsSchema } = version;
      if (paramsSchema === null) return params;
      return run(projectId, { kind: 'params', args: [{ id, paramsSchema }, params] });
    },
    /** The first invalid pattern of a session's proxies. */
    async patterns(projectId: string, session: SessionParams): Promise<Problem | undefined> {
      if (!hasPatterns(session)) return undefined;
      return run(projectId, { kind: 'patterns', args: [session] });
    },
    /**
     * The problem of a text that is not JSON. `owner`: the project of a lease, read only for a long
     * text; that of a lost lease is not checked, because it is dropped.
     */
    async json(owner: () => Promise<string | undefined>, text: string, depthMax: number) {
      if (text.length <= SCANNED_HERE_MAX) return jsonProblem(text, depthMax);
      const projectId = await owner();
      if (projectId === undefined) return undefined;
      return run(projectId, { kind: 'json', args: [text, depthMax] });
    },
    /** See core/validation/cron.ts; throws INVALID_FIELD. */
    nextTime: (projectId: string, times: Times, after: number): Promise<number> =>
      run(projectId, { kind: 'nextTime', args: [times, after] }),
    lastTime: (projectId: string, times: Times, until: number): Promise<number | undefined> =>
      run(projectId, { kind: 'lastTime', args: [times, until] }),
    certificates: (
      projectId: string,
      content: Uint8Array,
      now: number,
    ): Promise<ReadCertificates> => run(projectId, { kind: 'certificates', args: [content, now] }),
    manifests: (projectId: string, found: readonly Manifest[]): Promise<Checked> =>
      run(projectId, { kind: 'manifests', args: [found] }),
    [Symbol.asyncDispose]: () => queue.close(),
  };
}

class CheckQueue {
  readonly #pauseMs: number;
  readonly #waiting = openFairQueue<Waiter>();
  /** Projects with a check that runs: at most one each. */
  readonly #running = new Set<string>();
  /** Projects whose check was ended, and until when they wait. */
  readonly #paused = new Map<string, number>();
  readonly #all: readonly ValidatorWorker[];
  /** The last one was used last: the others start only when they are needed. */
  readonly #idle: ValidatorWorker[];
  #isClosed = false;

  constructor(checkMaxMs: number, pauseMs: number) {
    this.#pauseMs = pauseMs;
    this.#all = Array.from({ length: THREADS }, () => openValidatorWorker(checkMaxMs));
    this.#idle = [...this.#all];
  }

  run(projectId: string, check: Check): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new Fault('DRAINING', 'Shutting down.'));
    // Only params: a build is rare, and cannot be repeated.
    const isPaused = (this.#paused.get(projectId) ?? 0) > performance.now();
    if (isPaused && check.kind === 'params') return Promise.reject(tooSlow());
    if (!isPaused) this.#paused.delete(projectId);
    if (this.#waiting.sizeOf(projectId) >= WAITING_MAX) {
      return Promise.reject(new Fault('CORE_UNAVAILABLE', 'The service is overloaded.'));
    }
    const waiter = { ...Promise.withResolvers<unknown>(), check };
    this.#waiting.push(projectId, waiter);
    this.#next();
    return waiter.promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const fault = new Fault('DRAINING', 'Shutting down.');
    for (const { reject } of this.#waiting.clear()) reject(fault);
    await Promise.all(this.#all.map((validator) => validator.close(fault)));
  }

  #next(): void {
    while (!this.#isClosed && this.#idle.length > 0) {
      const next = this.#waiting.shift((projectId) => !this.#running.has(projectId));
      const validator = next && this.#idle.pop();
      if (!validator) return;
      this.#running.add(next.owner);
      void this.#run(validator, next.owner, next.item);
    }
  }

  async #run(validator: ValidatorWorker, projectId: string, waiter: Waiter): Promise<void> {
    try {
      waiter.resolve(await validator.run(waiter.check));
    } catch (error) {
      if (error instanceof CheckTimeoutError) this.#pause(projectId);
      waiter.reject(error instanceof CheckTimeoutError ? tooSlow() : asFault(error));
    }
    this.#running.delete(projectId);
    this.#idle.push(validator);
    this.#next();
  }

  /** The project's other checks of params are refused. */
  #pause(projectId: string): void {
    this.#paused.set(projectId, performance.now() + this.#pauseMs);
    for (const waiter of this.#waiting.clear(projectId)) {
      if (waiter.check.kind === 'params') waiter.reject(tooSlow());
      else this.#waiting.push(projectId, waiter);
    }
  }
}

function tooSlow(): Fault {
  const problem = 'took too long to check: the schema of the function is too complex.';
  return invalidField('params', problem);
}
