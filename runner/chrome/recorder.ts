/**
 * Pictures of one page as it changes, at most ten a second, for its recording. Chrome sends a
 * picture when something was drawn, and the next only when the last was acknowledged: that is
 * delayed. A page that draws without end costs Chrome half a core so (its capturer runs at 60 Hz
 * whatever is asked for): then the capture is stopped and started again for single pictures, until
 * two of them are the same.
 *   live --80 % of the pictures possible in 2 s--> sparing --two equal pictures--> live
 * Nothing of it shows in the page, nor to a client's own screencast.
 */
import type { Page } from './pages.ts';

/** Of a picture, and of what level 4.0 of H.264 holds. */
const SIDE_MAX = 1280;
/** Of JPEG. Ours: text stays readable, and a picture of 1280 by 800 has 30 to 100 KB. */
const QUALITY = 60;
/** Source: browser.md 4.1, as the next three. */
const FRAME_MS = 100;
const WINDOW_MS = 2_000;
const SATURATED = (0.8 * WINDOW_MS) / FRAME_MS;
const SPARING_MS = 250;

export type Picture = {
  jpeg: Buffer;
  /** When it came, in ms since 1970. */
  at: number;
};

export type Recorder = {
  stop(): void;
};

type Options = { now: () => number; onPicture(picture: Picture): void };

/** Begins at once and never throws: a page that cannot be recorded is gone or going. */
export function startRecorder({ session, closed }: Page, { now, onPicture }: Options): Recorder {
  let mode: 'live' | 'sparing' | 'over' = 'live';
  let last = '';
  let isEqual = false;
  let isShooting = false; // sparing, and its picture has not come
  let times: number[] = []; // of the pictures in the window
  let timer: NodeJS.Timeout | undefined;

  const tell = (method: string, params?: object): void => {
    session.call(`Page.${method}`, params).catch(() => undefined); // the page is gone, or hangs
  };
  const start = (): void => {
    isShooting = true;
    const size = { maxWidth: SIDE_MAX, maxHeight: SIDE_MAX };
    tell('startScreencast', { format: 'jpeg', quality: QUALITY, ...size });
  };
  const later = (act: () => void, ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(act, ms).unref();
  };
  const spare = (): void => {
    mode = 'sparing';
    isShooting = false;
    tell('stopScreencast');
    later(start, SPARING_MS);
  };
  const off = session.on('Page.screencastFrame', ({ data, sessionId }) => {
    if (mode === 'over' || (mode === 'sparing' && !isShooting)) return;
    const at = now();
    const isSame = data === last;
    if (!isSame) onPicture({ jpeg: Buffer.from(String(data), 'base64'), at });
    last = String(data);
    const acknowledge = (): void => tell('screencastFrameAck', { sessionId });
    if (mode === 'sparing' && !(isSame && isEqual)) {
      isEqual = isSame;
      spare();
      return;
    }
    if (mode === 'sparing') {
      mode = 'live'; // the capture that took this picture stays on
      times = [];
    }
    isEqual = isSame;
    times = [...times.filter((time) => at - time < WINDOW_MS), at];
    if (times.length >= SATURATED) spare();
    else setTimeout(acknowledge, FRAME_MS).unref();
  });
  const stop = (): void => {
    if (mode === 'over') return;
    mode = 'over';
    clearTimeout(timer);
    off();
    tell('stopScreencast');
  };
  void closed.then(stop);
  start();
  return { stop };
}

/** Width and height that a JPEG says it has; undefined when it is none. */
export function jpegSize(jpeg: Buffer): { width: number; height: number } | undefined {
  if (jpeg.length < 4 || jpeg.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let at = 2; at + 9 < jpeg.length; at += 2 + jpeg.readUInt16BE(at + 2)) {
    const marker = jpeg.readUInt16BE(at);
    const isFrame = marker >= 0xffc0 && marker <= 0xffc2;
    if (isFrame) return { height: jpeg.readUInt16BE(at + 5), width: jpeg.readUInt16BE(at + 7) };
    if (marker < 0xffc0) return undefined;
  }
  return undefined;
}
