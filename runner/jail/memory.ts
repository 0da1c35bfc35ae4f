/**
 * Watches how much memory a process tree really uses, where there is no cgroup to limit it: a limit
 * on what a process may reserve (limits.ts) must be far above what it uses.
 */
import { readFileSync } from 'node:fs';

/** Ours: at 1 GB/s, which is more than was seen, it is 200 MiB late. */
const INTERVAL_MS = 200;
const PAGE_BYTES = 4096;
/** Ours: deeper than the chain of programs that makes a jail. */
const DEPTH_MAX = 8;

export type Watched = {
  /** The jail's outermost process. */
  pid: number;
  maxBytes: number;
  /** Called once. */
  onOver(bytes: number): void;
};

/** Until it is disposed. A process that is gone uses nothing. */
export function watchMemory({ pid, maxBytes, onOver }: Watched): Disposable {
  const timer = setInterval(() => {
    const bytes = memoryOf(pid);
    if (bytes <= maxBytes) return;
    clearInterval(timer);
    onOver(bytes);
  }, INTERVAL_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** In bytes, resident and its own, of the process and all its descendants. */
export function memoryOf(pid: number, depth = 0): number {
  const [, resident = '0', shared = '0'] = read(`/proc/${pid}/statm`).split(' ');
  const own = (Number(resident) - Number(shared)) * PAGE_BYTES;
  if (depth === DEPTH_MAX) return own;
  const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  return children.reduce((sum, child) => sum + memoryOf(Number(child), depth + 1), own);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return ''; // it has ended
  }
}
