/**
 * The pictures of one target, for all who watch it: one screencast on a session of its own.
 *   open (the first picture comes at once, also of a page that stands still) -> closed, or gone
 * Chrome has at most two pictures on their way and sends no other before one of them is
 * acknowledged. So the rate is the rate of our acknowledgements, and where no viewer can take a
 * picture, none is made: a slow viewer builds no queue.
 */

import type { Pipe } from '../../browser/cdp/pipe.ts';
import { type Attached, attach, type TargetSession } from '../../browser/cdp/target-session.ts';

/** Ours: beyond 15 a second, Chrome's work grows and people see no difference. */
const FRAME_MS = 1_000 / 15;
/** While the page is between two processes. Ours: nobody waits longer for a page. */
const START_OPTIONS = { retryMs: 30_000 };
/** In pixels. A larger page is shown smaller. */
const FRAME_OPTIONS = { format: 'jpeg', quality: 65, maxWidth: 1_920, maxHeight: 1_920 } as const;

export type Frame = {
  jpeg: Buffer;
  /** Of the page, in its CSS pixels: what the coordinates of input are measured in. */
  width: number;
  height: number;
};

/** What a page asks its user, and waits for. */
export type Dialog = { kind: string; message: string; text: string };

export type ScreencastListener = {
  /** Another picture than the last; `latest` is it. */
  onFrame(): void;
  /** Another dialog than before, or none; `dialog` is it. */
  onDialog(): void;
  /** Whether it could take one now. */
  isReady(): boolean;
};

export type Screencast = {
  /** For input; the pictures' own. */
  readonly session: TargetSession;
  readonly latest: Frame | undefined;
  /** Known once somebody would answer it. */
  readonly dialog: Dialog | undefined;
  /**
   * Somebody is there who can answer the page's dialogs. Without, headless shell dismisses those
   * that no client takes, and Chromium shows them to nobody.
   */
  answerDialogs(): Promise<void>;
  watch(watcher: ScreencastListener): Disposable;
  /** To be called when a watcher has become ready. */
  resume(): void;
};

/** The screencasts of one Chrome: those who want the same target share one. */
export type Screencasts = {
  /** Rejects when the target is gone. The last to leave ends it. */
  acquire(targetId: string): Promise<{ screencast: Screencast } & Disposable>;
};

export function openScreencasts(pipe: Pipe): Screencasts {
  const shared = new Map<string, { screencast: Promise<SharedScreencast>; users: number }>();
  const leave = (targetId: string): void => {
    const one = shared.get(targetId);
    if (one === undefined || --one.users > 0) return;
    shared.delete(targetId);
    one.screencast.then(
      (screencast) => screencast[Symbol.asyncDispose](),
      () => undefined, // whoever took it was told
    );
  };
  return {
    async acquire(targetId) {
      const one = shared.get(targetId) ?? { screencast: openScreencast(pipe, targetId), users: 0 };
      shared.set(targetId, one);
      one.users += 1;
      try {
        return { screencast: await one.screencast, [Symbol.dispose]: once(() => leave(targetId)) };
      } catch (error) {
        leave(targetId);
        throw error;
      }
    },
  };
}

async function openScreencast(pipe: Pipe, targetId: string): Promise<SharedScreencast> {
  const session = await attach(pipe, targetId);
  const screencast = new SharedScreencast(session);
  try {
    await session.call('Page.startScreencast', FRAME_OPTIONS, START_OPTIONS);
  } catch (error) {
    await session[Symbol.asyncDispose]();
    throw error;
  }
  return screencast;
}

class SharedScreencast implements Screencast, AsyncDisposable {
  readonly session: Attached;
  readonly #watchers = new Set<ScreencastListener>();
  #latest: Frame | undefined;
  #dialog: Dialog | undefined;
  #screencastId: unknown;
  /** Pictures that Chrome waits to hear of. */
  #unacknowledged = 0;
  #acknowledgedAt = -FRAME_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(session: Attached) {
    this.session = session;
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

  get latest(): Frame | undefined {
    return this.#latest;
  }

  get dialog(): Dialog | undefined {
    return this.#dialog;
  }

  async answerDialogs(): Promise<void> {
    await this.session.call('Page.enable');
  }

  watch(watcher: ScreencastListener): Disposable {
    this.#watchers.add(watcher);
    this.resume();
    return { [Symbol.dispose]: () => void this.#watchers.delete(watcher) };
  }

  resume(): void {
    if (this.#unacknowledged === 0 || this.#timer !== undefined) return;
    if (![...this.#watchers].some((watcher) => watcher.isReady())) return;
    const waitMs = Math.max(0, this.#acknowledgedAt + FRAME_MS - performance.now());
    this.#timer = setTimeout(() => this.#acknowledge(), waitMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#unacknowledged = 0;
    await this.session[Symbol.asyncDispose](); // the screencast ends with it
  }

  #setDialog(dialog: Dialog | undefined): void {
    this.#dialog = dialog;
    for (const watcher of this.#watchers) watcher.onDialog();
  }

  #onFrame(params: Record<string, unknown>): void {
    const { data, metadata, sessionId } = params as {
      data: string;
      metadata: { deviceWidth: number; deviceHeight: number };
      sessionId: unknown;
    };
    const { deviceWidth: width, deviceHeight: height } = metadata;
    this.#screencastId = sessionId;
    this.#unacknowledged += 1;
    this.#latest = { jpeg: Buffer.from(data, 'base64'), width, height };
    for (const watcher of this.#watchers) watcher.onFrame();
    this.resume();
  }

  #acknowledge(): void {
    this.#timer = undefined;
    this.#unacknowledged -= 1;
    this.#acknowledgedAt = performance.now();
    // rejects when the page is gone, and the pictures with it
    const acknowledged = this.session.call('Page.screencastFrameAck', {
      sessionId: this.#screencastId,
    });
    acknowledged.catch(() => undefined);
    this.resume();
  }
}

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) act();
    isDone = true;
  };
}
