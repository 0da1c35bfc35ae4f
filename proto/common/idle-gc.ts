/**
 * Collects garbage when the process is idle. V8 keeps the memory of a start or a burst of work
 * until it needs more: about 40 MB of an idle `tabern serve`, for days. The heap is collected once
 * this thread has done almost nothing for a while, and again only after it has worked in between.
 *
 *   working --an idle check--> idle (collected) --a busy check--> working
 */
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Interval of the checks, and how much of it this thread may work to count as idle. Ours. */
const LOOK_MS = 5_000;
const QUIET_SHARE = 0.02;
/** A collection stops the thread for about 40 ms: at most one in this time. Ours. */
const PAUSE_MS = 60_000;

type Sources = {
  now: () => number;
  /** Work of this thread since its start, from node:perf_hooks. */
  utilization: () => EventLoopUtilization;
  collect: () => void;
};

/** Starts; stops when disposed. Does not keep the process alive. */
export function giveBackAtRest(): Disposable {
  const { now, eventLoopUtilization } = performance;
  const look = looker({
    now: now.bind(performance),
    utilization: eventLoopUtilization.bind(performance),
    collect: collectAll,
  });
  const timer = setInterval(look, LOOK_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** The function that runs at each check. */
export function looker({ now, utilization, collect }: Sources): () => void {
  let last = utilization();
  let hasWorked = true;
  let restedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const { active, idle } = utilization();
    const worked = active - last.active;
    const isQuiet = worked <= QUIET_SHARE * (worked + idle - last.idle);
    last = { ...last, active, idle };
    hasWorked ||= !isQuiet;
    if (!isQuiet || !hasWorked || now() - restedAt < PAUSE_MS) return;
    collect();
    hasWorked = false;
    restedAt = now();
    last = utilization(); // the check's own work does not count
  };
}

/** Collects all unused memory, including compiled functions that have not run for long. */
export function collectAll(): void {
  setFlagsFromString('--expose-gc'); // the only way without a flag at the start
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
