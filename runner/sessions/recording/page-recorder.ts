/**
 * Captures frames of one page as it changes, about ten a second, for its recording. The decisions
 * about the modes are in runner/browser/README.md.
 *   live --two frames within 100 ms--> sparing --two equal frames--> live
 *   live, sparing --a window opens, which may pause the page--> still --runs, or after 5 s--> live
 * A page that opens windows without end is still for a limited share of the time.
 * The page cannot detect any of it, nor can a client's own screencast.
 */

import { whenDrawn, whenRunning } from '../../browser/cdp/drawing.ts';
import type { Page } from '../../browser/cdp/pages.ts';
import type { CallOptions, TargetSession } from '../../browser/cdp/target-session.ts';

/** Of a frame; the limit of level 4.0 of H.264. */
const SIDE_MAX = 1280;
/** Of JPEG. Ours: text stays readable, and a frame of 1280 by 800 has 30 to 100 KB. */
const QUALITY = 60;
/** This and the next three: runner/browser/README.md, "A page that draws often". */
const FRAME_MS = 100;
const WINDOW_MS = 2_000;
const SATURATED = (0.8 * WINDOW_MS) / FRAME_MS;
const SPARING_MS = 250;
/** Ours: a client resumes a new window after a round trip or two, also on a busy machine. */
const STILL_MS = 5_000;
/** Ours: of the time in which it may be still, regained in each ms in which it is not. */
const REGAINED = 0.25;
/**
 * Ours: longer than any session. A start that Chrome refuses is sent again, also when it answers
 * after seconds, until it is not needed any more.
 */
const START_TIMEOUT_MS = 24 * 3_600_000;

export type Frame = {
  jpeg: Buffer;
  /** Time of arrival, in ms since 1970. */
  at: number;
};

type Options = { now: () => number; onFrame(frame: Frame): void };

/** Starts at once and never throws: a page that cannot be recorded is gone or closing. */
export class PageRecorder {
  readonly #page: Page;
  readonly #session: TargetSession;
  readonly #options: Options;
  readonly #listeners: (() => void)[];
  #mode: 'live' | 'sparing' | 'still' | 'over' = 'live';
  #last = '';
  #isShooting = false; // sparing, and its frame has not arrived
  #times: number[] = []; // when the frames in the window arrived
  #drawnAt = -FRAME_MS; // the last frame, in ms since 1970
  #restMs = FRAME_MS; // between two frames, sparing
  #wanted = new AbortController(); // aborts the capture that started last
  #holds = 0; // windows that may pause the page
  #wasHeld = false; // and has not been visible since
  #isStale = false; // Chrome's frames are from then
  #stillLeftMs = STILL_MS; // of the time in which it may be still
  #changedAt = performance.now(); // to still, or from it
  #restsUntil = 0; // is not still before, as that time was used up
  #deadline: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(page: Page, options: Options) {
    const { session, closed } = page;
    this.#page = page;
    this.#session = session;
    this.#options = options;
    this.#listeners = [
      session.on('Page.screencastFrame', ({ data, sessionId, metadata }) => {
        const { timestamp } = (metadata ?? {}) as { timestamp?: number };
        const drawnAt = timestamp === undefined ? options.now() : timestamp * 1_000;
        this.#onFrame(String(data), { sessionId, drawnAt });
      }),
      session.on('Page.screencastVisibilityChanged', ({ visible }) => {
        this.#onVisibility(visible === true);
      }),
    ];
    this.#start();
    void closed.then(() => this.stop());
  }

  /** A window has opened, which may pause the page. */
  hold(): void {
    if (this.#mode === 'over') return;
    this.#holds += 1;
    if (this.#holds === 1) this.#pause(); // not again after the deadline: windows may never cease
    const release = (): void => {
      this.#holds -= 1;
      if (this.#holds === 0) this.#resume();
    };
    void whenRunning(this.#page).then(release);
  }

  /** Chrome may send no frame of the new size. */
  resized(): void {
    if (this.#mode === 'live' || this.#mode === 'sparing') this.#renew();
  }

  stop(): void {
    if (this.#mode === 'over') return;
    this.#mode = 'over';
    clearTimeout(this.#timer);
    clearTimeout(this.#deadline);
    for (const remove of this.#listeners) remove();
    this.#halt();
  }

  #onFrame(data: string, { sessionId, drawnAt }: { sessionId: unknown; drawnAt: number }): void {
    const isUnasked = this.#mode === 'sparing' && !this.#isShooting;
    if (this.#mode === 'over' || this.#mode === 'still' || isUnasked) return;
    if (this.#isStale) {
      this.#send('screencastFrameAck', { sessionId });
      return;
    }
    const at = this.#options.now();
    const isSame = data === this.#last;
    if (!isSame) this.#options.onFrame({ jpeg: Buffer.from(data, 'base64'), at });
    this.#last = data;
    // Chrome states when it drew a frame, so this alone bounds nothing
    const isDrawnQuickly = drawnAt - this.#drawnAt < FRAME_MS;
    const isQuick = at - (this.#times.at(-1) ?? -FRAME_MS) < FRAME_MS || isDrawnQuickly;
    this.#drawnAt = drawnAt;
    const recent = this.#times.filter((time) => at - time < WINDOW_MS);
    this.#times = [...recent, at].slice(-SATURATED); // also when the clock is set back
    if (this.#mode === 'sparing' ? !isSame : isQuick) {
      this.#spare();
      return;
    }
    this.#mode = 'live'; // the capture that took this frame continues
    this.#send('screencastFrameAck', { sessionId });
  }

  #pause(): void {
    const now = performance.now();
    if (now < this.#restsUntil) return;
    const regained = REGAINED * (now - this.#changedAt);
    this.#stillLeftMs = Math.min(STILL_MS, this.#stillLeftMs + regained);
    this.#changedAt = now;
    this.#mode = 'still';
    clearTimeout(this.#timer);
    this.#halt();
    this.#deadline = setTimeout(() => this.#resume(), this.#stillLeftMs).unref();
  }

  #resume(): void {
    if (this.#mode !== 'still') return;
    clearTimeout(this.#deadline);
    const now = performance.now();
    this.#stillLeftMs -= now - this.#changedAt;
    this.#changedAt = now;
    if (this.#stillLeftMs <= 0) this.#restsUntil = now + STILL_MS;
    this.#mode = 'live';
    this.#wasHeld = true;
    this.#start();
  }

  #onVisibility(isVisible: boolean): void {
    if (!isVisible) {
      this.#isStale ||= this.#wasHeld;
      return;
    }
    this.#wasHeld = false;
    if (!this.#isStale) return;
    const renew = (): void => {
      this.#isStale = false;
      if (this.#mode === 'live') this.#renew();
    };
    void whenDrawn(this.#page).then(renew);
  }

  #renew(): void {
    clearTimeout(this.#timer);
    this.#halt();
    this.#start();
  }

  /** The next frame in a while, also when Chrome has dropped one. */
  #spare(): void {
    if (this.#times.length >= SATURATED) this.#restMs = SPARING_MS;
    else if (this.#mode === 'live') this.#restMs = FRAME_MS;
    this.#mode = 'sparing';
    this.#isShooting = false;
    this.#halt();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#start(), this.#restMs).unref();
  }

  #start(): void {
    this.#isShooting = true;
    this.#wanted = new AbortController();
    const size = { maxWidth: SIDE_MAX, maxHeight: SIDE_MAX };
    const wanted = { timeoutMs: START_TIMEOUT_MS, signal: this.#wanted.signal };
    this.#send('startScreencast', { format: 'jpeg', quality: QUALITY, ...size }, wanted);
  }

  #halt(): void {
    this.#wanted.abort();
    this.#send('stopScreencast');
  }

  #send(method: string, params?: object, options?: CallOptions): void {
    // Rejects when the page is gone, or hangs.
    this.#session.call(`Page.${method}`, params, options).catch(() => undefined);
  }
}

/** Width and height from the header of a JPEG; undefined when it is not a JPEG. */
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
