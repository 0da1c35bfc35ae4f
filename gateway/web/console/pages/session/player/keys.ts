/** The keys of a player. */
import { type Key, useKeys } from '../../../parts/keys.tsx';
import type { Video } from './video.ts';

export const SPEEDS = [0.5, 1, 2, 4, 8];
/** In seconds. Frames are recorded ten times a second at most. */
const FRAME = 0.1;

type Parts = {
  video: Video;
  speed: number;
  setSpeed(speed: number): void;
  /** A running session has a live picture, to which `l` returns. */
  isGrowing: boolean;
};

export function usePlayerKeys({ video, speed, setSpeed, isGrowing }: Parts): void {
  const by = (seconds: number) => () => {
    if (video.current) video.current.currentTime += seconds;
  };
  const frame = (seconds: number) => () => {
    video.current?.pause();
    by(seconds)();
  };
  const faster = () => {
    if (video.current?.paused) play(video);
    else setSpeed(Math.min(SPEEDS.at(-1) ?? 1, Math.max(1, speed) * 2));
  };
  const stop = () => {
    video.current?.pause();
    setSpeed(1);
  };
  const keys: Key[] = [
    { keys: ' ', does: 'play or pause (Space)', run: () => toggle(video) },
    { keys: 'ArrowLeft', does: '5 s back', run: by(-5) },
    { keys: 'ArrowRight', does: '5 s forward', run: by(5) },
    { keys: 'Shift+ArrowLeft', does: '1 s back', run: by(-1) },
    { keys: 'Shift+ArrowRight', does: '1 s forward', run: by(1) },
    { keys: ',', does: 'a frame back', run: frame(-FRAME) },
    { keys: '.', does: 'a frame forward', run: frame(FRAME) },
    { keys: 'j or J', does: '10 s back', run: by(-10) },
    { keys: 'k or K', does: 'pause, at the usual speed', run: stop },
  ];
  const fast: Key = { keys: 'l or L', does: 'play, then twice as fast', run: faster };
  useKeys(isGrowing ? keys : [...keys, fast]);
}

/** Plays or pauses. */
export function toggle(video: Video): void {
  if (video.current?.paused) play(video);
  else video.current?.pause();
}

function play({ current }: Video): void {
  current?.play().catch(() => undefined); // nothing is there yet, or another page was chosen
}
