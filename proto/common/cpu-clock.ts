/**
 * A limit on the CPU time of one task of a worker thread. Wall time depends on the load of the
 * machine; CPU time depends on the task only.
 */
import type { Worker } from 'node:worker_threads';

/**
 * A thread responds only between calls of V8's built-in functions. One call that runs for this many
 * limits of wall time (parsing, sorting, replacing) counts as over the limit.
 */
const SILENT_LIMITS = 20;

/**
 * Calls `over` once when the thread has used `maxMs` of CPU time from now on, at most a quarter
 * more. The thread must be online. Dispose the limit when the task ends. CPU time never exceeds
 * wall time, so a task that ends within the first quarter costs one timer and no query of the
 * thread.
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
