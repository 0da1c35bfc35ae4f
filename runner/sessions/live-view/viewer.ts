/**
 * One viewer of a live view: its socket, the tab it shows, and its input.
 *   open -> closed (by either side, once)
 * Sent: JSON {type: 'tabs' | 'size' | 'dialog' | 'notice' | 'control' | 'handoff' |
 * 'again'}, and each frame as one binary message.
 * Received: input.ts. The viewer acknowledges each frame when it is drawn; two may be in flight.
 */
import type { WebSocket } from 'ws';
import type { Log } from '../../../proto/common/log.ts';
import type { Page, Pages } from '../../browser/cdp/pages.ts';
import { openPauses } from '../../browser/cdp/pauses.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import type { PendingHandoff } from '../handoffs.ts';
import { endSoon } from '../relay/outbox.ts';
import { actions, type ViewerAction } from './actions.ts';
import { readMessage } from './input.ts';
import type { Screencast, ScreencastListener, Screencasts } from './screencast.ts';

/** Ours: one is drawn while the next is sent. */
const FRAMES_IN_FLIGHT_MAX = 2;
/** In bytes: a socket with more buffered is behind. */
const BEHIND_BYTES = 512 << 10;
/** In a close frame, as core says it to a later connection. */
const HANDOFF_OVER = 'The request to you has ended. You may close this page.';
/** Ours: a page may change its title endlessly. */
const TABS_EVERY_MS = 100;
const TABS_MAX = 100;
const TITLE_MAX_CHARS = 256;
const URL_MAX_CHARS = 2_048;
const DIALOG_MAX_CHARS = 4_096;
/** Ours: a person makes 150 a second, including acknowledgements of frames. */
const MESSAGES_PER_S = 400;
/**
 * Actions on a tab that is not shown yet are done when it is; input applies to a visible frame
 * only.
 */
const DEFERRED: readonly ViewerAction['kind'][] = ['navigate', 'history', 'reload'];

type ViewerOptions = {
  socket: WebSocket;
  pipe: Pipe;
  pages: Pages;
  screencasts: Screencasts;
  /** The one tab to show; undefined: the active one. */
  target: string | undefined;
  /** The viewer may only watch. */
  isReadOnly: boolean;
  /** The handoff with which the view ends. */
  handoffId?: string | undefined;
  /** The person has finished a handoff. */
  finish: (handoffId: string) => Promise<void>;
  log: Log;
};

export class Viewer implements ScreencastListener {
  readonly #options: ViewerOptions;
  readonly #act: ReturnType<typeof actions>;
  readonly #stopWatching: () => void;
  readonly #allowed = bucket(MESSAGES_PER_S);
  #shown: Page | undefined;
  #screencast: Screencast | undefined;
  #releaseScreencast: DisposableStack | undefined;
  /** The last action on the tab that is about to be shown. */
  #deferred: ViewerAction | undefined;
  #inFlight = 0;
  #isDirty = false;
  #isClosing = false;
  #size = '';
  #tabs = '';
  #tabsTimer: NodeJS.Timeout | undefined;
  #isControlled = false;
  #handoffId: string | undefined;
  #isFinishing = false;

  constructor(options: ViewerOptions) {
    const { socket, pages } = options;
    this.#options = options;
    this.#act = actions(options, (text) => this.#send({ type: 'notice', text }));
    this.#stopWatching = pages.onChange(() => this.follow());
    const { share } = options.pipe;
    socket.on('message', (bytes: Buffer, isBinary: boolean) => {
      share.spend(() => this.#onMessage(bytes, isBinary));
    });
    socket.once('close', share.add(openPauses(socket)));
    // a message that is too long or a broken frame: ws closes with its code
    socket.on('error', () => socket.terminate());
    socket.once('close', () => this.#onClose());
    this.follow();
  }

  get isReadOnly(): boolean {
    return this.#options.isReadOnly;
  }

  /** Whether another viewer may take input. */
  onControl(isByOther: boolean): void {
    if (isByOther === this.#isControlled) return;
    this.#isControlled = isByOther;
    this.#send({ type: 'control', isByOther });
  }

  /** The request to the person; undefined when there is none. */
  onHandoff(handoff: PendingHandoff | undefined): void {
    if (handoff?.id === this.#handoffId) return;
    const hasEnded = this.#handoffId !== undefined && this.#handoffId === this.#options.handoffId;
    this.#handoffId = handoff?.id;
    const { id, instructions } = handoff ?? {};
    this.#send({ type: 'handoff', handoff: handoff ? { id, instructions } : null });
    if (hasEnded) this.close(1008, HANDOFF_OVER);
  }

  close(code: number, reason: string): void {
    const { socket } = this.#options;
    if (this.#isClosing) return;
    this.#isClosing = true;
    socket.close(code, reason);
    endSoon(socket);
  }

  /** Switches to the tab that is to be shown now. */
  follow(): void {
    const { pages, target } = this.#options;
    const page = target === undefined ? pages.active : pages.byTarget(target);
    if (target !== undefined && page === undefined) {
      this.close(1000, 'the tab was closed');
      return;
    }
    this.#sendTabs();
    if (page === this.#shown) return;
    this.#shown = page;
    this.#deferred = undefined;
    this.#release();
    if (page) void this.#show(page);
  }

  onFrame(): void {
    this.#isDirty = true;
    this.#sendFrame();
  }

  onDialog(): void {
    const dialog = this.#screencast?.dialog;
    const message = dialog?.message.slice(0, DIALOG_MAX_CHARS);
    const text = dialog?.text.slice(0, DIALOG_MAX_CHARS);
    this.#send({ type: 'dialog', dialog: dialog ? { ...dialog, message, text } : null });
  }

  isReady(): boolean {
    const { socket } = this.#options;
    return this.#inFlight < FRAMES_IN_FLIGHT_MAX && socket.bufferedAmount < BEHIND_BYTES;
  }

  async #show(page: Page): Promise<void> {
    const { screencasts, target, isReadOnly, log } = this.#options;
    try {
      const { screencast, release } = await screencasts.acquire(page.targetId);
      // another tab is shown by now, or a later call for the same tab was faster
      if (this.#shown !== page || this.#screencast) {
        release.dispose();
        return;
      }
      release.use(screencast.watch(this));
      this.#screencast = screencast;
      this.#releaseScreencast = release;
      this.onFrame();
      this.onDialog();
      const { session } = screencast;
      if (this.#deferred && !this.#isClosing) this.#act(this.#deferred, session);
      this.#deferred = undefined;
      // Rejects where the page hangs, or waits in a dialog.
      await Promise.allSettled([
        // the tab may be hidden, and a hidden tab paints nothing
        target && session.call('Emulation.setFocusEmulationEnabled', { enabled: true }),
        isReadOnly || screencast.answerDialogs(),
      ]);
    } catch (error) {
      // the page closed meanwhile: onChange updates its viewers
      if (this.#shown !== page || !this.#options.pages.byTarget(page.targetId)) return;
      log.warn({ error: String(error) }, 'a live view cannot show its page');
      this.close(1011, 'the page cannot be shown');
    }
  }

  #sendFrame(): void {
    const frame = this.#screencast?.latest;
    if (!this.#isDirty || !frame || !this.isReady()) return;
    const size = JSON.stringify({ type: 'size', width: frame.width, height: frame.height });
    if (size !== this.#size) this.#options.socket.send(size);
    this.#size = size;
    this.#isDirty = false;
    this.#inFlight += 1;
    this.#options.socket.send(frame.jpeg, { binary: true });
  }

  #onMessage(bytes: Buffer, isBinary: boolean): void {
    if (this.#isClosing) return;
    if (!this.#allowed()) {
      this.close(1008, 'too many messages');
      return;
    }
    const message = isBinary ? undefined : readMessage(bytes);
    if (message === undefined) this.close(1008, 'not a message of a live view');
    else if (message.kind === 'ack') {
      this.#inFlight = Math.max(0, this.#inFlight - 1);
      this.#sendFrame();
      this.#screencast?.resume();
    } else if (this.#options.isReadOnly) return;
    else if (message.kind === 'done') void this.#finish(message.id);
    else if (this.#shown && !this.#screencast && DEFERRED.includes(message.kind))
      this.#deferred = message;
    else this.#act(message, this.#screencast?.session);
  }

  /** One call to core at a time, whatever the viewer sends. */
  async #finish(id: string): Promise<void> {
    if (id !== this.#handoffId || this.#isFinishing) return;
    this.#isFinishing = true;
    await this.#options.finish(id);
    this.#isFinishing = false;
    // its end comes by itself; after a failed report the person may press Done again
    if (id === this.#handoffId && !this.#isClosing) this.#send({ type: 'again', id });
  }

  #sendTabs(): void {
    if (this.#tabsTimer !== undefined) return;
    const update = (): void => {
      this.#tabsTimer = undefined;
      const tabs = this.#tabsNow();
      if (tabs === this.#tabs) return;
      this.#tabsTimer = setTimeout(update, TABS_EVERY_MS); // for changes in the meantime
      if (this.#options.socket.bufferedAmount >= BEHIND_BYTES) return;
      this.#tabs = tabs;
      this.#options.socket.send(tabs);
    };
    update();
  }

  #tabsNow(): string {
    const { pages, target } = this.#options;
    const active = target ?? pages.active?.targetId;
    const open = pages.open().filter((page) => target === undefined || page.targetId === target);
    const tabs = open.slice(0, TABS_MAX).map(({ targetId: id, title, url }) => ({
      id,
      title: title.slice(0, TITLE_MAX_CHARS),
      url: url.slice(0, URL_MAX_CHARS),
      isShown: id === active,
    }));
    return JSON.stringify({ type: 'tabs', tabs });
  }

  #send(message: object): void {
    const { socket } = this.#options;
    if (socket.bufferedAmount < BEHIND_BYTES) socket.send(JSON.stringify(message));
  }

  #release(): void {
    this.#releaseScreencast?.dispose();
    this.#releaseScreencast = undefined;
    this.#screencast = undefined;
  }

  #onClose(): void {
    this.#stopWatching();
    clearTimeout(this.#tabsTimer);
    this.#shown = undefined;
    this.#release();
  }
}

/** Token bucket: returns whether one more message is allowed; its burst is one second's worth. */
function bucket(perSecond: number): () => boolean {
  let left = perSecond;
  let at = performance.now();
  return () => {
    const now = performance.now();
    left = Math.min(perSecond, left + ((now - at) / 1_000) * perSecond);
    at = now;
    left -= 1;
    return left >= 0;
  };
}
