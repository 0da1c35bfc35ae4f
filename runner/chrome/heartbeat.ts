/**
 * Finds a Chrome that hangs: it is asked its version every 5 s; two silences in a row and it is
 * given up.
 */
import type { Pipe } from './pipe.ts';

const BEAT_MS = 5_000;
const MISSES_MAX = 2;

/**
 * Calls `onHang` once. A page in an endless loop does not count: the browser process answers all
 * the same.
 */
export function watchHeart(
  pipe: Pick<Pipe, 'call' | 'isPaused'>,
  onHang: () => void,
  beatMs = BEAT_MS,
): () => void {
  let misses = 0;
  const timer = setInterval(() => {
    pipe.call('Browser.getVersion', {}, beatMs).then(
      () => {
        misses = 0;
      },
      () => {
        if (pipe.isPaused) return; // its answer waits behind a client that does not read
        misses += 1;
        if (misses !== MISSES_MAX) return;
        clearInterval(timer);
        onHang();
      },
    );
  }, beatMs);
  return () => clearInterval(timer);
}
