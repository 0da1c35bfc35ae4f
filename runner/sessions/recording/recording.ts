/**
 * The recording of one session: a track per page, cut into segments while the session runs, so that
 * little is left to encode at its end. A page's video begins with its first frame; a blank page has
 * none until it shows something.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { openPages, type Page, type Pages } from '../../browser/cdp/pages.ts';
import { type Resizes, resizes } from '../../browser/cdp/resizes.ts';
import type { OpenComponent } from '../session.ts';
import type { FrameBuffer } from './frame-buffer.ts';
import { type Frame, PageRecorder } from './page-recorder.ts';
import type { Recipient, Recordings, Track } from './uploader.ts';

/** Source: proto/spec/sessions.md 8. */
const PAGES_MAX = 10;
/** Ours: at most this much is left to encode when a session ends. */
const SEGMENT_MS = 30_000;
/** In bytes of frames. Ours: the encoder takes two seconds for them and returns one blob. */
const SEGMENT_BYTES = 32 << 20;
/** Ours: a page that closes sooner, and shows nothing, is not worth a capture. */
const BLANK_MS = 300;
/** Ours: how long the end of a session waits for the reports to core. */
const REPORT_TIMEOUT_MS = 1_000;

type Options = Recipient & {
  projectId: string;
  recordings: Recordings;
  now: () => number;
  /** For the session's log. */
  warn: (message: string) => void;
};
type OpenSegment = { track: Track; number: number; buffer: FrameBuffer };

export function recording(options: Options): OpenComponent {
  return async (chrome) => {
    const pages = await openPages(chrome);
    const sizes = resizes(chrome.pipe);
    const sessionAt = options.now();
    const stops: (() => void)[] = [];
    const reports: Promise<void>[] = [];
    const closing = new AbortController();
    const warn = once(options.warn);
    const stopWatching = pages.onPage((page) => {
      if (page.id >= PAGES_MAX) return;
      const state = { warn, sizes, sessionAt, reports, closing: closing.signal };
      stops.push(recordPage(page, pages, { ...options, ...state }));
    });
    return {
      async close() {
        stopWatching();
        for (const stop of stops) stop();
        closing.abort();
        const late = sleep(REPORT_TIMEOUT_MS, undefined, { ref: false });
        await Promise.race([Promise.all(reports), late]);
      },
    };
  };
}

/** Each page of a session would repeat the warning. */
function once(warn: Options['warn']): Options['warn'] {
  let hasWarned = false;
  return (message) => {
    if (!hasWarned) warn(message);
    hasWarned = true;
  };
}

type PageOptions = Options & {
  sizes: Resizes;
  sessionAt: number;
  reports: Promise<void>[];
  /** Aborts when the session ends, and its end waits for the reports. */
  closing: AbortSignal;
};

/** Returns the function that ends the recording; the end of the page does too. */
function recordPage(page: Page, pages: Pages, options: PageOptions): () => void {
  const { now, sizes } = options;
  const track = openTrack(page, options);
  let recorder: PageRecorder | undefined;
  let isOver = false;
  let hasShown = false;
  let isHeld = false; // possibly, by a window that opened before there was a recorder
  const onFrame = (frame: Frame): void => {
    // the first frame of a blank page is white; only later ones are worth keeping
    if (hasShown || !isBlank(page)) track.add(frame);
    hasShown = true;
  };
  const start = (): void => {
    stopWaiting();
    if (isOver || recorder !== undefined) return;
    recorder = new PageRecorder(page, { now, onFrame });
    if (isHeld) recorder.hold();
  };
  const timer = setTimeout(start, BLANK_MS);
  const offChange = pages.onChange(() => isBlank(page) || start());
  const offResize = sizes.on(page, () => recorder?.resized());
  // whichever page opened it: it may pause all pages of a process
  const offWindow = pages.onWindow(() => {
    isHeld = true;
    recorder?.hold();
  });
  function stopWaiting(): void {
    clearTimeout(timer);
    offChange();
  }
  const stop = (): void => {
    if (isOver) return;
    isOver = true;
    offWindow();
    offResize();
    stopWaiting();
    recorder?.stop();
    track.end();
  };
  if (!isBlank(page)) start();
  void page.closed.then(stop);
  return stop;
}

function isBlank({ url }: Page): boolean {
  return url === '' || url === 'about:blank';
}

/** Cuts frames into segments. */
function openTrack(
  page: Page,
  { recordings, sessionAt, reports, closing, ...options }: PageOptions,
) {
  const { clients, lease, sessionId, projectId, now, warn } = options;
  let segment: OpenSegment | undefined;
  let lastAt = 0;

  const open = (track: Track, number: number): OpenSegment => {
    const name = `${lease.id}-${page.id}-${number}`;
    return { track, number, buffer: recordings.openFrameBuffer(name, projectId) };
  };
  const begin = (at: number): OpenSegment => {
    const { id: pageId, url } = page;
    const to = { clients, lease, sessionId, projectId };
    const state = { bytes: 0, isBroken: false, warn };
    const track: Track = { ...to, pageId, url, sessionAt, startAt: at, ...state };
    reports.push(recordings.report(track, closing));
    return open(track, 1);
  };
  const cut = ({ track, number, buffer }: OpenSegment, until: number, isLast: boolean): void => {
    track.url = page.url;
    recordings.send({ track, number, buffer, until, isLast });
  };
  return {
    add({ jpeg, at: arrived }: Frame): void {
      const at = Math.max(arrived, lastAt + 1); // the clock may be set back
      segment ??= begin(at);
      if (segment.track.isBroken) return;
      const first = segment.buffer.frames[0]?.at ?? at;
      if (at - first >= SEGMENT_MS || segment.buffer.bytes >= SEGMENT_BYTES) {
        cut(segment, at, false);
        segment = open(segment.track, segment.number + 1);
      }
      // a frame that is dropped is replaced by the one before it, which lasts longer
      if (segment.buffer.add({ jpeg, at })) lastAt = at;
    },
    end(): void {
      if (segment !== undefined) cut(segment, Math.max(now(), lastAt + 1), true);
      segment = undefined;
    },
  };
}
