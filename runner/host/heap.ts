/**
 * Whether a thread has come to the limit of its heap. Node ends it then, and says so. Deno 2.9 ends
 * what runs at that moment; where that was behind a promise, as a handler is, the thread goes on
 * with nothing to do, and nobody is told. What is left of it is a limit that has been moved.
 */
import process from 'node:process';
import { getHeapStatistics } from 'node:v8';

/** Ours: an outcome is late by no more than that; a look takes 10 µs. */
const LOOK_MS = 100;

/** Taken before a tenant's code can replace them. */
const { setInterval, clearInterval } = globalThis;
const statistics = getHeapStatistics;
const given = statistics().heap_size_limit;
const isDeno = process.versions['deno'] !== undefined;

/** Under Deno; a thread of Node is gone then. */
export function isHeapSpent(): boolean {
  return isDeno && statistics().heap_size_limit !== given;
}

/** Calls `onSpent` once, soon after the heap has come to its limit; not after it is disposed. */
export function watchHeap(onSpent: () => void): Disposable {
  if (!isDeno) return { [Symbol.dispose]() {} };
  const timer = setInterval(() => {
    if (!isHeapSpent()) return;
    clearInterval(timer);
    onSpent();
  }, LOOK_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
