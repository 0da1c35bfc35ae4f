/**
 * Which file a run starts, and when. Slow files start several services and browsers each: three of
 * them side by side only make each other wait. One works beside quick ones, and two when no quick
 * one is left; a further one starts when the machine has room for it, as while those that run wait
 * for a lease or a timeout.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';

const POLL_MS = 250;
/** The load is an average of so long, and a new file shows in it after as long. Ours. */
const AVERAGE_MS = 5_000;
/** Processes that want a CPU, for each CPU: a machine with more has no room. Ours. */
const WANTED_MAX = 2;
/** Slow files at a time, at least, when no quick one is left. Ours. */
const SLOW_ALONE = 2;

type Queues = { slow: readonly string[]; quick: readonly string[] };
type Options = {
  /** Files at a time. */
  jobs: number;
  /** False: no further file begins. */
  mayBegin: () => boolean;
  /** Processes that want a CPU now; that of the machine when absent. */
  wanted?: () => number;
};

/** Runs the files, each queue in its order. Settles with the last one. */
export async function runInLanes(
  { slow, quick }: Queues,
  { jobs, mayBegin, wanted = wantedNow }: Options,
  run: (file: string) => Promise<unknown>,
): Promise<void> {
  const waiting = { slow: [...slow], quick: [...quick] };
  const running = new Map<Promise<unknown>, keyof Queues>();
  const room = openRoom(wanted);
  const maySlow = (): boolean => {
    const count = [...running.values()].filter((queue) => queue === 'slow').length;
    return count < (waiting.quick.length > 0 ? 1 : SLOW_ALONE) || room.isThere();
  };
  const begin = (queue: keyof Queues, file: string): void => {
    const one = run(file).finally(() => running.delete(one));
    running.set(one, queue);
  };
  const next = (): keyof Queues | undefined => {
    if (waiting.slow.length > 0 && maySlow()) return 'slow';
    return waiting.quick.length > 0 ? 'quick' : undefined;
  };
  while (mayBegin() && waiting.slow.length + waiting.quick.length > 0) {
    const queue = running.size < jobs ? next() : undefined;
    const file = queue && waiting[queue].shift();
    if (queue && file) {
      begin(queue, file);
      if (queue === 'slow') room.taken();
    } else await Promise.race([...running.keys(), pause(POLL_MS)]);
    room.look();
  }
  await Promise.all(running.keys());
}

/** Averages the processes that want a CPU. */
function openRoom(wanted: () => number) {
  let average = wanted();
  let lookedAt = performance.now();
  let takenAt = lookedAt;
  return {
    look(): void {
      const now = performance.now();
      const share = 1 - Math.exp((lookedAt - now) / AVERAGE_MS);
      average += (wanted() - average) * share;
      lookedAt = now;
    },
    taken(): void {
      takenAt = performance.now();
    },
    isThere: (): boolean =>
      performance.now() - takenAt > AVERAGE_MS && average < WANTED_MAX * availableParallelism(),
  };
}

function wantedNow(): number {
  const [, count] = /^procs_running (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8')) ?? [];
  return Number(count);
}
