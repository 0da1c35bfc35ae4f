/**
 * Detects a Chrome that hangs: its version is requested every 5 s, and after six timeouts in a row
 * it is considered hung, because a healthy one may need half a minute on a loaded machine. A Chrome
 * that sends any bytes does not hang: its response may be queued behind a message of 128 MiB, which
 * takes that long on a busy machine (seen).
 */
import type { Pipe } from './cdp/pipe.ts';

const BEAT_MS = 5_000;
const MISSES_MAX = 6;

/**
 * Calls `onHang` once. A page in an endless loop does not count: the browser process still
 * responds.
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
        if (pipe.isPaused) return; // its response waits behind a client that does not read
        misses = pipe.bytesReceived > before ? 0 : misses + 1;
        if (misses !== MISSES_MAX) return;
        clearInterval(timer);
        onHang();
      },
    );
  }, beatMs);
  return () => clearInterval(timer);
}
