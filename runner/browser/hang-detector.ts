/**
 * Finds a Chrome that hangs: it is asked its version every 5 s; six silences in a row and it is
 * given up, since a good one may have no time for half a minute on a loaded machine. One that says
 * anything at all does not hang: its answer may stand behind a message of 128 MiB, which a busy
 * machine takes that long for (seen).
 */
import type { Pipe } from './cdp/pipe.ts';

const BEAT_MS = 5_000;
const MISSES_MAX = 6;

/**
 * Calls `onHang` once. A page in an endless loop does not count: the browser process answers all
 * the same.
 */
export function watchHeart(
  pipe: Pick<Pipe, 'call' | 'isPaused' | 'bytesReceived'>,
  onHang: () => void,
  beatMs = BEAT_MS,
): () => void {
  let misses = 0;
  const timer = setInterval(() => {
    const before = pipe.bytesReceived;
    pipe.call('Browser.getVersion', {}, beatMs).then(
      () => {
        misses = 0;
      },
      () => {
        if (pipe.isPaused) return; // its answer waits behind a client that does not read
        misses = pipe.bytesReceived > before ? 0 : misses + 1;
        if (misses !== MISSES_MAX) return;
        clearInterval(timer);
        onHang();
      },
    );
  }, beatMs);
  return () => clearInterval(timer);
}
