/**
 * Gives memory back when a process comes to rest. V8 keeps what a start or a burst of work took for
 * as long as nobody asks it for more: some 40 MB of a `tabern serve` that is ready, for days. So
 * the heap is collected and given back once this thread has done next to nothing for a while; and
 * again only when it has worked in between.
 *   working --a quiet look--> resting (collected) --a busy look--> working
 */
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** How often is looked, and how much of that time this thread may work to be quiet. Ours. */
const LOOK_MS = 5_000;
const QUIET_SHARE = 0.02;
/** Collecting stops the thread for some 40 ms: not more often than this. Ours. */
const PAUSE_MS = 60_000;

type Sources = {
  now: () => number;
  /** What this thread has done since it began; of node:perf_hooks. */
  utilization: () => EventLoopUtilization;
  collect: () => void;
};

/** From now on, until disposed of. Keeps no process alive. */
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

/** What is done at each look. */
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
    last = utilization(); // its own work does not count
  };
}

/** Everything that is not in use, down to compiled functions that have not run for long. */
export function collectAll(): void {
  setFlagsFromString('--expose-gc'); // the one way to it that needs no flag at the start
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
