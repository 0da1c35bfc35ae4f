/**
 * A limit on the CPU time of a jail. Wall time would depend on the machine's load; CPU time
 * measures the work alone. Read by the runner: a jailed process cannot misreport it.
 */
import { readProc, sumOfChain } from './cgroups/memory-watch.ts';

/** Linux reports times of processes in hundredths of a second. */
const TICK_MS = 10;
/** Fields of /proc/<pid>/stat after the name: user and system time, own and of ended children. */
const [FIRST, PAST] = [11, 15];
/** Ours: between two checks. */
const CHECK_MIN_MS = 100;

export type WorkLimits = {
  /** Of all threads of the jail together. */
  cpuMs: number;
  /** Ends work that waits without using CPU time; far above what a loaded machine needs. */
  wallMs: number;
};

/** In milliseconds, since the start of the jail. 0 without /proc. */
export function cpuMsOf(pid: number): number {
  return sumOfChain(pid, ownCpuMs);
}

function ownCpuMs(pid: number): number {
  const stat = readProc(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // a name may contain anything
  return fields.slice(FIRST, PAST).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
}

/**
 * Starts measuring now. `used` returns the CPU time of the jail in milliseconds. The signal aborts
 * when a limit is exceeded; its reason is an Error that names the limit.
 */
export function limitWork(used: () => number, { cpuMs, wallMs }: WorkLimits) {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const began = { cpu: used(), wall: performance.now() };
  const look = (): void => {
    const leftMs = cpuMs - (used() - began.cpu);
    const leftWallMs = wallMs - (performance.now() - began.wall);
    if (leftMs <= 0) over.abort(new Error(`used more than ${cpuMs / 1_000} s of CPU time`));
    else if (leftWallMs <= 0) over.abort(new Error(`did not end within ${wallMs / 1_000} s`));
    else timer = setTimeout(look, Math.max(CHECK_MIN_MS, Math.min(leftMs / 4, leftWallMs)));
  };
  look();
  return { signal: over.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}
