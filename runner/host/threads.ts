/**
 * The threads of a host: one piscina pool. A thread starts unbound, is bound to the bundle of its
 * first task, and takes
 * tasks of that bundle only. A task goes to an idle thread of its bundle, else to an unbound one,
 * else to a new one; when all places are bound, the one idle for longest is ended first. Aborting a
 * task is how its thread is retired: the pool replaces it and never offers it work again.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Piscina, queueOptionsSymbol as queueOptions } from 'piscina';
import type { Task } from './worker.ts';

/**
 * Ours: a handler waits for its browser most of the time, so more threads than cores pay. Source:
 * sandbox.md 3.
 */
export const THREADS_MAX = 4;
const IDLE_TIMEOUT_MS = 60_000;
/**
 * In MiB, per thread. codeRange: an isolate maps 528 MiB of it unasked, which RLIMIT_DATA counts.
 * Source: sandbox.md 8.
 */
const RESOURCE_LIMITS = {
  maxOldGenerationSizeMb: 256,
  maxYoungGenerationSizeMb: 32,
  codeRangeSizeMb: 64,
  stackSizeMb: 4,
};

/** What the balancer reads of a task: it sees piscina's queue options only. */
type Queued = { bundle: string; isOver: boolean };
/** A thread that has a bundle, or is being ended. */
type Bound = { bundle: string | undefined; lastUsed: number; last: Queued };

/** Runs tasks; the promise rejects when the thread ended before its task did. */
export type Threads = {
  run(task: Task, bundle: string, signal: AbortSignal): Promise<void>;
};

export function openThreads(env: Record<string, string>): Threads {
  const bound = new Map<number, Bound>();
  let waiting = 0;
  const pool = new Piscina({
    filename: fileURLToPath(new URL('worker.ts', import.meta.url)),
    minThreads: 1,
    maxThreads: THREADS_MAX,
    concurrentTasksPerWorker: 1,
    idleTimeout: IDLE_TIMEOUT_MS,
    atomics: 'disabled',
    recordTiming: false,
    resourceLimits: RESOURCE_LIMITS,
    env,
    argv: [],
    loadBalancer: (task, workers) => {
      const queued = task[queueOptions] as Queued;
      const idle = workers.filter((worker) => worker.currentUsage === 0);
      const chosen =
        idle.find((worker) => bound.get(worker.id)?.bundle === queued.bundle) ??
        idle.find((worker) => !bound.has(worker.id));
      if (chosen === undefined) return null;
      waiting -= 1;
      bound.set(chosen.id, { bundle: queued.bundle, lastUsed: performance.now(), last: queued });
      return chosen;
    },
  });
  // a thread that dies without a task would end the host; the pool has replaced it already
  pool.on('error', () => {});

  return {
    async run(task, bundle, signal) {
      const queued: Queued = { bundle, isOver: false };
      waiting += 1;
      try {
        await makeRoom(pool, bound, { bundle, waiting });
        const taken = { ...task, [queueOptions]: queued };
        await pool.run(taken, { signal, transferList: [task.port] });
      } finally {
        queued.isOver = true;
      }
    },
  };
}

/**
 * Ends the thread that has been idle for longest when neither its bundle's nor an unbound one can
 * take a new task.
 */
async function makeRoom(
  pool: Piscina,
  bound: Map<number, Bound>,
  wanted: { bundle: string; waiting: number },
): Promise<void> {
  const alive = new Map(pool.threads.map((thread) => [thread.threadId, thread]));
  for (const id of bound.keys()) if (!alive.has(id)) bound.delete(id);
  const idle = [...bound].filter(([, { last, bundle }]) => last.isOver && bundle !== undefined);
  const hasOwn = idle.some(([, { bundle }]) => bundle === wanted.bundle);
  if (hasOwn || THREADS_MAX - bound.size >= wanted.waiting) return;
  const [id, oldest] = idle.sort(([, a], [, b]) => a.lastUsed - b.lastUsed)[0] ?? [];
  const thread = id === undefined ? undefined : alive.get(id);
  if (thread === undefined || oldest === undefined) return;
  oldest.bundle = undefined; // the balancer passes over it from now on
  const ended = once(thread, 'exit');
  await thread.terminate();
  await ended;
}
