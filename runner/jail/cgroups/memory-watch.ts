/**
 * Watches the memory that jails really use, where no cgroup limits it: a limit on what a process
 * may reserve (runner/jail/prlimit.ts) must be far above what it uses.
 */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';

/** Maximum growth of a jail's memory in a second. Ours: twice what was seen on two cores. */
const GROWTH_BYTES = 2 * 2 ** 30;
/** Ours: at that speed a check is 400 MiB late; checks go on, because new processes may appear. */
const LOOK_MIN_MS = 200;
const LOOK_MAX_MS = 5_000;
const PAGE_BYTES = 4096;
/** Ours: deeper than the chain of programs that starts a jail. */
const DEPTH_MAX = 8;
/** The part of a file that is read: a name in /proc/<pid>/stat has 64 bytes at most. */
const chunk = Buffer.alloc(4096);

export type Watched = {
  /** The jail's outermost process. */
  pid: number;
  maxBytes: number;
  /** Called once. */
  onOver(bytes: number): void;
};

/** `bytes`: as of the last check, a few seconds ago; undefined before the first. */
export type MemoryWatch = Disposable & { readonly bytes: number | undefined };

/** With the bytes of its last check. */
const watched = new Map<Watched, number | undefined>();
let next: NodeJS.Timeout | undefined;
/** Time of the next check, by performance.now(). */
let nextAt = Number.POSITIVE_INFINITY;

/**
 * Watches until it is disposed. A process that is gone uses nothing. All jails are checked
 * together, less often the further all of them are from their limits.
 */
export function watchMemory(one: Watched): MemoryWatch {
  watched.set(one, undefined);
  scheduleCheck(pauseFor(one.maxBytes));
  return {
    get bytes() {
      return watched.get(one);
    },
    [Symbol.dispose]: () => void watched.delete(one),
  };
}

function scheduleCheck(ms: number): void {
  const at = performance.now() + ms;
  if (at >= nextAt) return;
  clearTimeout(next);
  nextAt = at;
  next = setTimeout(check, ms).unref();
}

function check(): void {
  nextAt = Number.POSITIVE_INFINITY;
  const used = memoryOfTrees([...watched.keys()].map(({ pid }) => pid));
  for (const one of watched.keys()) {
    const bytes = used.get(one.pid) ?? 0;
    if (bytes <= one.maxBytes) {
      watched.set(one, bytes);
      scheduleCheck(pauseFor(one.maxBytes - bytes));
      continue;
    }
    watched.delete(one);
    one.onOver(bytes);
  }
}

/** In milliseconds, for this many bytes below a limit. */
function pauseFor(bytes: number): number {
  return Math.min(Math.max((bytes / GROWTH_BYTES) * 1_000, LOOK_MIN_MS), LOOK_MAX_MS);
}

/**
 * In bytes, by outermost process: the sum over all its descendants. Uses the parents of all
 * processes: a process started by a thread (Chrome's helpers) is only listed as a child of that
 * thread.
 */
export function memoryOfTrees(roots: readonly number[]): Map<number, number> {
  const pids = readdirSync('/proc').map(Number).filter(Boolean); // other names are NaN
  const children = Map.groupBy(pids, parentOf);
  return new Map([...new Set(roots)].map((root) => [root, sumBelow(root, children)]));
}

function sumBelow(root: number, children: Map<number, number[]>): number {
  let sum = 0;
  const tree = [root];
  for (const pid of tree) {
    sum += ownBytes(pid);
    tree.push(...(children.get(pid) ?? []));
    children.delete(pid); // a pid that was reused meanwhile must not form a cycle
  }
  return sum;
}

/** 0 when the process has ended. */
export function parentOf(pid: number): number {
  const stat = readProc(`/proc/${pid}/stat`);
  // after its name, which may contain anything: `) S 1`
  return Number(stat.slice(stat.lastIndexOf(')') + 4).split(' ', 1)[0]);
}

/** In bytes, of the process chain: complete for a function host, checked after every run. */
export function memoryOf(pid: number): number {
  return sumOfChain(pid, ownBytes);
}

/** Sum over a process and the children of its main thread, recursively. */
export function sumOfChain(pid: number, of: (pid: number) => number, depth = 0): number {
  const own = of(pid);
  if (depth === DEPTH_MAX) return own;
  const children = readProc(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  return children.reduce((sum, child) => sum + sumOfChain(Number(child), of, depth + 1), own);
}

/** Resident and not shared. */
function ownBytes(pid: number): number {
  const [, resident = '0', shared = '0'] = readProc(`/proc/${pid}/statm`).split(' ');
  return (Number(resident) - Number(shared)) * PAGE_BYTES;
}

/** The first bytes of the file; takes a third of the time of readFileSync. */
export function readProc(path: string): string {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return chunk.toString('latin1', 0, readSync(file, chunk, 0, chunk.length, 0)).trim();
  } catch {
    return ''; // the process has ended
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
