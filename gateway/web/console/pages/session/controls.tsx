/** What every picture of a session has: the way back to the live one, and the full screen. */
import { seekNowhere } from '../../data/playhead.ts';
import { announce } from '../../parts/notice.tsx';

/** Leaves the recording of a running session. */
export function ToLive() {
  return (
    <button type="button" class="main to-live" title="l" onClick={seekNowhere}>
      Live
    </button>
  );
}

/** The picture fills the screen, or no longer does. */
export function toggleFull(): void {
  const isFull = document.fullscreenElement !== null;
  const picture = document.querySelector('.picture');
  const change = isFull ? document.exitFullscreen() : picture?.requestFullscreen();
  change?.catch(() => announce('This browser does not show one element on the full screen.'));
}
