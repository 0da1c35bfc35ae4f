/**
 * Whether a thread has reached the limit of its heap. Node ends the thread then and reports it.
 * Deno 2.9 aborts only the current task; where that was behind a promise, as a handler is, the
 * thread continues idle without any report. The only sign is that the heap limit has changed.
 */
import process from 'node:process';
import { getHeapStatistics } from 'node:v8';

/** Ours: an outcome is at most this late; a check takes 10 µs. */
const LOOK_MS = 100;

/** Captured before a tenant's code can replace them. */
const { setInterval, clearInterval } = globalThis;
const statistics = getHeapStatistics;
const given = statistics().heap_size_limit;
const isDeno = process.versions['deno'] !== undefined;

/** Only under Deno; a thread of Node is gone then. */
export function isHeapSpent(): boolean {
  return isDeno && statistics().heap_size_limit !== given;
}

/** Calls `onSpent` once, soon after the heap has reached its limit; never after it is disposed. */
export function watchHeap(onSpent: () => void): Disposable {
  if (!isDeno) return { [Symbol.dispose]() {} };
  const timer = setInterval(() => {
    if (!isHeapSpent()) return;
    clearInterval(timer);
    onSpent();
  }, LOOK_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
