/**
 * A limit on the CPU time of one piece of a worker thread's work. Wall time would judge the load of
 * the machine; CPU time judges the work alone.
 */
import type { Worker } from 'node:worker_threads';

/**
 * A thread answers between two calls of V8's own built-in functions. One call that outlasts this
 * many limits of wall time (parsing, sorting, replacing) counts as over the limit.
 */
const SILENT_LIMITS = 20;

/**
 * Calls `over` once when the thread has used `maxMs` of CPU time since now, and a quarter more at
 * most. The thread must be online. Dispose of the limit when the work ends. CPU time never exceeds
 * wall time, so work that ends within the first quarter costs one timer and no look at the thread.
 */
export function limitCpu(worker: Worker, maxMs: number, over: () => void): Disposable {
  let isOver = false;
  let before: number | undefined;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    over();
  };
  const look = async (): Promise<void> => {
    timer = setTimeout(end, maxMs * SILENT_LIMITS);
    const used = await cpuMs(worker);
    if (isOver) return;
    clearTimeout(timer);
    if (used === undefined) return;
    before ??= used;
    const leftMs = maxMs - (used - before);
    if (leftMs > 0) {
      timer = setTimeout(look, Math.max(1, leftMs));
      return;
    }
    end();
  };
  let timer = setTimeout(look, maxMs / 4);
  return {
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}

/** undefined when the thread has ended. */
async function cpuMs(worker: Worker): Promise<number | undefined> {
  try {
    const { user, system } = await worker.cpuUsage();
    return (user + system) / 1_000;
  } catch {
    return undefined; // its `error` and `exit` events report the end
  }
}
