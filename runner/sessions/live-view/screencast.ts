/**
 * The screencast of one target, shared by all its viewers, on a CDP session of its own.
 *   open (the first frame arrives at once, also for a static page) -> closed, or gone
 * Chrome sends at most two frames without an acknowledgement. So our acknowledgements set the frame
 * rate, and no frame is made while no viewer can take one: a slow viewer builds no queue.
 */

import type { Pipe } from '../../browser/cdp/pipe.ts';
import { type Resizes, resizes } from '../../browser/cdp/resizes.ts';
import { type Attached, attach } from '../../browser/cdp/target-session.ts';

/** Ours: beyond 15 a second, Chrome's work grows and people see no difference. */
const FRAME_MS = 1_000 / 15;
/**
 * Chrome 156 drops a frame while it encodes or waits for acknowledgements of three others, and
 * never sends it (seen). Ours: after frames so close together the capture starts again, when none
 * has come for as long.
 */
const CLOSE_MS = 300;
/** Retried while the page changes its process. Ours: no viewer waits longer for a page. */
const START_OPTIONS = { timeoutMs: 30_000 };
/** In pixels. A larger page is scaled down. */
const FRAME_OPTIONS = { format: 'jpeg', quality: 65, maxWidth: 1_920, maxHeight: 1_920 } as const;

export type Frame = {
  jpeg: Buffer;
  /** Of the page, in CSS pixels: the unit of input coordinates. */
  width: number;
  height: number;
};

/** A JavaScript dialog that a page waits in. */
export type Dialog = { kind: string; message: string; text: string };

export type ScreencastListener = {
  /** A new frame arrived: `latest`. */
  onFrame(): void;
  /** A dialog opened or closed: `dialog`. */
  onDialog(): void;
  /** Whether it can take a frame now. */
  isReady(): boolean;
};

/** The screencasts of one Chrome, shared by target. */
export type Screencasts = {
  /** Rejects when the target is gone. The last `release` ends the screencast. */
  acquire(targetId: string): Promise<{ screencast: Screencast; release: DisposableStack }>;
};

export function openScreencasts(pipe: Pipe): Screencasts {
  const shared = new Map<string, { screencast: Promise<Screencast>; users: number }>();
  const leave = (targetId: string): void => {
    const one = shared.get(targetId);
    if (one === undefined || --one.users > 0) return;
    shared.delete(targetId);
    one.screencast.then(
      (screencast) => screencast[Symbol.asyncDispose](),
      () => undefined, // the caller of `acquire` got the error
    );
  };
  return {
    async acquire(targetId) {
      const one = shared.get(targetId) ?? { screencast: openScreencast(pipe, targetId), users: 0 };
      shared.set(targetId, one);
      one.users += 1;
      try {
        const screencast = await one.screencast;
        const release = new DisposableStack();
        release.defer(() => leave(targetId));
        return { screencast, release };
      } catch (error) {
        leave(targetId);
        throw error;
      }
    },
  };
}

async function openScreencast(pipe: Pipe, targetId: string): Promise<Screencast> {
  const session = await attach(pipe, targetId);
  const screencast = new Screencast(session, targetId, resizes(pipe));
  try {
    await session.call('Page.startScreencast', FRAME_OPTIONS, START_OPTIONS);
  } catch (error) {
    await screencast[Symbol.asyncDispose]();
    throw error;
  }
  return screencast;
}

export class Screencast implements AsyncDisposable {
  /** For input; the screencast's own. */
  readonly session: Attached;
  latest: Frame | undefined;
  /** Known after `answerDialogs`. */
  dialog: Dialog | undefined;
  readonly #watchers = new Set<ScreencastListener>();
  readonly #stopListening: () => void;
  #screencastId: unknown;
  /** Of the capture before: its frames are dropped. */
  #replacedId: unknown;
  /** Frames that Chrome waits to be acknowledged. */
  #unacknowledged = 0;
  #acknowledgedAt = -FRAME_MS;
  #timer: NodeJS.Timeout | undefined;
  /** Of this capture. */
  #frameAt = Number.NEGATIVE_INFINITY;
  /** Chrome may have dropped one of this capture. */
  #mayMissFrame = false;
  /** Pending while no frame has come since all were acknowledged. */
  #renewal: NodeJS.Timeout | undefined;

  constructor(session: Attached, targetId: string, sizes: Resizes) {
    this.session = session;
    this.#stopListening = sizes.on({ targetId, session }, () => this.#renew());
    session.on('Page.screencastFrame', (params) => this.#onFrame(params));
    session.on('Page.javascriptDialogOpening', (params) => {
      const { type: kind, message, defaultPrompt = '' } = params;
      this.#setDialog({
        kind: String(kind),
        message: String(message),
        text: String(defaultPrompt),
      });
    });
    session.on('Page.javascriptDialogClosed', () => this.#setDialog(undefined));
  }

  /**
   * Call this when a viewer can answer dialogs. Otherwise headless shell dismisses dialogs that no
   * client handles, and Chromium does not show them.
   */
  async answerDialogs(): Promise<void> {
    await this.session.call('Page.enable');
  }

  watch(watcher: ScreencastListener): Disposable {
    this.#watchers.add(watcher);
    this.resume();
    return { [Symbol.dispose]: () => void this.#watchers.delete(watcher) };
  }

  /** Call this when a listener becomes ready. */
  resume(): void {
    if (this.#unacknowledged === 0 || this.#timer !== undefined) return;
    if (![...this.#watchers].some((watcher) => watcher.isReady())) return;
    const waitMs = Math.max(0, this.#acknowledgedAt + FRAME_MS - performance.now());
    this.#timer = setTimeout(() => this.#acknowledge(), waitMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopListening();
    this.#forgetFrames();
    await this.session[Symbol.asyncDispose](); // the screencast ends with it
  }

  #forgetFrames(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    clearTimeout(this.#renewal);
    this.#unacknowledged = 0;
    this.#mayMissFrame = false;
    this.#frameAt = Number.NEGATIVE_INFINITY;
  }

  /** Starts the capture again: its first frame arrives also when the page is static. */
  #renew(): void {
    this.#forgetFrames();
    this.#replacedId = this.#screencastId;
    // both reject when the page is gone, and its screencast with it
    this.session.call('Page.stopScreencast').catch(() => undefined);
    this.session.call('Page.startScreencast', FRAME_OPTIONS, START_OPTIONS).catch(() => undefined);
  }

  #setDialog(dialog: Dialog | undefined): void {
    this.dialog = dialog;
    for (const watcher of this.#watchers) watcher.onDialog();
  }

  #onFrame(params: Record<string, unknown>): void {
    const { data, metadata, sessionId } = params as {
      data: string;
      metadata: { deviceWidth: number; deviceHeight: number };
      sessionId: unknown;
    };
    if (sessionId === this.#replacedId) return;
    const { deviceWidth: width, deviceHeight: height } = metadata;
    this.#screencastId = sessionId;
    this.#unacknowledged += 1;
    const now = performance.now();
    this.#mayMissFrame ||= now - this.#frameAt < CLOSE_MS;
    this.#frameAt = now;
    clearTimeout(this.#renewal);
    this.latest = { jpeg: Buffer.from(data, 'base64'), width, height };
    for (const watcher of this.#watchers) watcher.onFrame();
    this.resume();
  }

  #acknowledge(): void {
    this.#timer = undefined;
    this.#unacknowledged -= 1;
    this.#acknowledgedAt = performance.now();
    const frame = { sessionId: this.#screencastId };
    // rejects when the page is gone, and its screencast with it
    this.session.call('Page.screencastFrameAck', frame).catch(() => undefined);
    if (this.#unacknowledged === 0 && this.#mayMissFrame) {
      this.#renewal = setTimeout(() => this.#renew(), CLOSE_MS);
    }
    this.resume();
  }
}
