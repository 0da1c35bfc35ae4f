/**
 * The threads of a host: one piscina pool. A thread starts unbound, is bound to the bundle of its
 * first task, and takes tasks of that bundle only. A task is sent to an idle thread of its bundle,
 * else to an unbound one, else to a new one; when all threads are bound, the one idle for longest
 * is ended first. Aborting a task retires its thread: the pool replaces it and sends it no more
 * work. A function with isolation `fresh` gets an unused thread. Which functions are fresh is known
 * once their bundle has been loaded; before that none of its threads has run anything.
 */
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Piscina, queueOptionsSymbol as queueOptions } from 'piscina';
import type { Isolation, Task } from './worker.ts';

/** Ours: a handler waits for its browser most of the time, so more threads than cores pay off. */
const THREADS_MAX = 4;
/** One that runs, one that is ready. */
const THREADS_MIN_FRESH = 2;
const IDLE_TIMEOUT_MS = 60_000;
/** In MiB. codeRange: RLIMIT_DATA counts the 528 MiB that an isolate maps by default (Node 24). */
const RESOURCE_LIMITS = {
  maxOldGenerationSizeMb: 256,
  maxYoungGenerationSizeMb: 32,
  codeRangeSizeMb: 64,
  stackSizeMb: 4,
};

/** Node's compile cache, in this host's own /tmp, for its threads alone. Deno has its own. */
const COMPILED = '.compiled';

/** Task options for the balancer, which sees piscina's queue options only. */
type Queued = { bundle: string; isFresh: boolean; isOver: boolean };
/** A thread that is bound to a bundle, or is being ended. */
type Bound = { bundle: string | undefined; lastUsed: number; last: Queued };

/** Runs tasks; the promise rejects when the thread ended before its task did. */
export type Threads = {
  run(task: Task, bundle: string, signal: AbortSignal): Promise<void>;
  /** Names functions of a bundle that need an unused thread. */
  markFresh(bundle: string, fresh: readonly string[]): void;
};

export function openThreads(env: Record<string, string>, isolation: Isolation): Threads {
  const bound = new Map<number, Bound>();
  const fresh = new Map<string, readonly string[]>();
  let waiting = 0;
  const pool = new Piscina({
    filename: fileURLToPath(new URL('worker.ts', import.meta.url)),
    minThreads: isolation === 'fresh' ? THREADS_MIN_FRESH : 1,
    maxThreads: THREADS_MAX,
    concurrentTasksPerWorker: 1,
    idleTimeout: IDLE_TIMEOUT_MS,
    atomics: 'disabled',
    recordTiming: false,
    resourceLimits: RESOURCE_LIMITS,
    env: { ...env, NODE_COMPILE_CACHE: join(tmpdir(), COMPILED) },
    argv: [],
    loadBalancer: (task, workers) => {
      const queued = task[queueOptions] as Queued;
      const idle = workers.filter((worker) => worker.currentUsage === 0);
      const own = idle.find((worker) => bound.get(worker.id)?.bundle === queued.bundle);
      const chosen =
        (queued.isFresh ? undefined : own) ?? idle.find((worker) => !bound.has(worker.id));
      if (chosen === undefined) return null;
      waiting -= 1;
      bound.set(chosen.id, { bundle: queued.bundle, lastUsed: performance.now(), last: queued });
      return chosen;
    },
  });
  // an error of an idle thread would end the host; the pool has replaced the thread already
  pool.on('error', () => {});

  return {
    async run(task, bundle, signal) {
      const name = task.type === 'invoke' ? task.functionName : '';
      const isFresh = fresh.get(bundle)?.includes(name) === true;
      const queued: Queued = { bundle, isFresh, isOver: false };
      waiting += 1;
      try {
        await makeRoom(pool, bound, { bundle, isFresh, waiting });
        const taken = { ...task, [queueOptions]: queued };
        await pool.run(taken, { signal, transferList: [task.port] });
      } finally {
        queued.isOver = true;
      }
    },
    markFresh(bundle, names) {
      if (names.length === 0) return;
      fresh.set(bundle, names);
      // read whenever a thread ends: from now on an unused one is ready
      pool.options.minThreads = THREADS_MIN_FRESH;
    },
  };
}

/** Ends the thread that was idle for longest when no other thread can take a new task. */
async function makeRoom(
  pool: Piscina,
  bound: Map<number, Bound>,
  wanted: { bundle: string; isFresh: boolean; waiting: number },
): Promise<void> {
  const alive = new Map(pool.threads.map((thread) => [thread.threadId, thread]));
  for (const id of bound.keys()) if (!alive.has(id)) bound.delete(id);
  const idle = [...bound].filter(([, { last, bundle }]) => last.isOver && bundle !== undefined);
  const hasOwn = !wanted.isFresh && idle.some(([, { bundle }]) => bundle === wanted.bundle);
  if (hasOwn || THREADS_MAX - bound.size >= wanted.waiting) return;
  const [id, oldest] = idle.sort(([, a], [, b]) => a.lastUsed - b.lastUsed)[0] ?? [];
  const thread = id === undefined ? undefined : alive.get(id);
  if (thread === undefined || oldest === undefined) return;
  oldest.bundle = undefined; // the balancer skips it from now on
  const ended = once(thread, 'exit');
  await thread.terminate();
  await ended;
}
