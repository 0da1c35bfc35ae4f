/**
 * The pages of one Chrome, numbered in order of creation, popups included: the pageId of logs,
 * recordings and live views. Each page has one CDP session of ours, shared by all components. These
 * sessions hang below the root session, whose auto-attach nothing else may use; clients auto-attach
 * on their own sessions and are not affected.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Chrome } from '../launch.ts';
import { pageOverrides } from './page-overrides.ts';
import type { Pipe } from './pipe.ts';
import { openTargetSession, type TargetSession } from './target-session.ts';

/** Prerendered pages are excluded, as are workers, frames and extensions. */
const PAGES_ONLY = [{ type: 'page' }, { exclude: true }];

/** Ours: the timeout of one call on a page's session. */
const PREPARE_TIMEOUT_MS = 2_000;

export type Page = {
  /** Number within the session, from 0; never reused. */
  readonly id: number;
  readonly targetId: string;
  readonly url: string;
  /** Chrome reports title changes late: call `refresh` first where that matters. */
  readonly title: string;
  /**
   * Shared: disable no domain, and enable nothing that a page can detect. A page that hangs does
   * not respond; a crashed one responds again after a navigation.
   */
  readonly session: TargetSession;
  /** Settles when the page or Chrome is gone; never rejects. */
  readonly closed: Promise<void>;
};

type Preparation = (page: Page) => Promise<unknown>;
type Target = Record<'targetId' | 'type' | 'url' | 'title', string> &
  Partial<Record<'subtype' | 'openerId', string>>;
type OpenPage = { -readonly [key in keyof Page]: Page[key] } & { end(): void };
type Attachment = { sessionId: string; targetInfo: Target; waitingForDebugger: boolean };

const opened = new WeakMap<Pipe, Promise<Pages>>();

/** One list per Chrome, shared by all callers. Rejects when Chrome is gone. */
export function openPages({ pipe }: Pick<Chrome, 'pipe'>): Promise<Pages> {
  const pages = opened.get(pipe) ?? watch(pipe);
  opened.set(pipe, pages);
  return pages;
}

async function watch(pipe: Pipe): Promise<Pages> {
  const pages = new Pages(pipe);
  const discover = { discover: true, filter: PAGES_ONLY };
  await Promise.all([pipe.call('Target.setDiscoverTargets', discover), pages.attachAll()]);
  return pages;
}

export class Pages {
  readonly #pipe: Pipe;
  readonly #ids = new Map<string, number>(); // by target
  readonly #open = new Map<string, OpenPage>(); // by session
  readonly #onPages = new Set<(page: Page) => void>();
  readonly #onWindows = new Set<() => void>();
  readonly #onChanges = new Set<() => void>();
  readonly #preparations: Preparation[] = [];
  /** Targets that are being attached. */
  readonly #attaching = new Map<string, Promise<unknown>>();
  #front: string[] = []; // targets, the active one last

  constructor(pipe: Pipe) {
    this.#pipe = pipe;
    pipe.onEvent(({ method, params }) => {
      if (method === 'Target.attachedToTarget') this.#onAttached(params as Attachment);
      else if (method === 'Target.targetCreated') this.#onCreated(params['targetInfo'] as Target);
      else if (method === 'Target.detachedFromTarget')
        this.#onDetached(String(params['sessionId']));
      else if (method === 'Target.targetInfoChanged') this.#update(params['targetInfo'] as Target);
    });
    void pipe.closed.then(() => {
      for (const sessionId of this.#open.keys()) this.#onDetached(sessionId);
    });
  }

  /** Attaches the existing pages; later ones attach when they appear. */
  async attachAll(): Promise<void> {
    const { targetInfos } = await this.#pipe.call('Target.getTargets', { filter: PAGES_ONLY });
    await Promise.all((targetInfos as Target[]).map((target) => this.#attach(target)));
  }

  /** The open pages, by number. */
  open(): Page[] {
    return [...this.#open.values()].sort((a, b) => a.id - b.id);
  }

  /** The page opened or brought to the front last. */
  get active(): Page | undefined {
    return this.byTarget(this.#front.at(-1) ?? '');
  }

  /** The page of that target, when it is open. */
  byTarget(targetId: string): Page | undefined {
    return [...this.#open.values()].find((page) => page.targetId === targetId);
  }

  /**
   * Calls the listener for every open page at once, and for every new one. Returns the function
   * that removes it.
   */
  onPage(listener: (page: Page) => void): () => void {
    this.#onPages.add(listener);
    for (const page of this.#open.values()) listener(page);
    return () => void this.#onPages.delete(listener);
  }

  /** Called when a page has opened a window (link or script), before that window is attached. */
  onWindow(listener: () => void): () => void {
    this.#onWindows.add(listener);
    return () => void this.#onWindows.delete(listener);
  }

  /** Called when a page opens, closes, becomes active, or changes its address or title. */
  onChange(listener: () => void): () => void {
    this.#onChanges.add(listener);
    return () => void this.#onChanges.delete(listener);
  }

  /** Reads every address and title from Chrome. */
  async refresh(): Promise<void> {
    const { targetInfos } = await this.#pipe.call('Target.getTargets', { filter: PAGES_ONLY });
    for (const target of targetInfos as Target[]) this.#update(target);
  }

  /**
   * Runs before any code of a page that opens from now on, and for the open pages. Send the
   * commands all at once: a client that waits for new pages itself resumes one for everyone (Chrome
   * does not count the waiting sessions), but its command is processed after those sent here. A
   * preparation that takes longer than 2 s, or rejects, holds no page. Settles when the open pages
   * are prepared. A new page then costs two round trips, so use this only when needed.
   */
  async prepare(preparation: Preparation): Promise<void> {
    const before = [...this.#open.values()];
    this.#preparations.push(preparation);
    await this.#pipe.call('Target.setAutoAttach', {
      autoAttach: true,
      flatten: true,
      waitForDebuggerOnStart: true,
      filter: PAGES_ONLY,
    });
    await Promise.all(before.map((page) => within(preparation(page))));
  }

  /** The number of a page target; assigned now if it has none. */
  idOf(targetId: string): number {
    const id = this.#ids.get(targetId) ?? this.#ids.size;
    this.#ids.set(targetId, id);
    return id;
  }

  /** Called when a client brought that target to the front. */
  activate(targetId: string): void {
    if (this.#front.at(-1) === targetId || !this.byTarget(targetId)) return;
    this.#front = [...this.#front.filter((id) => id !== targetId), targetId];
    this.#notifyChange();
  }

  /**
   * Attaches by hand while there are no preparations: with auto-attach, a popup waits for its
   * debugger without a request to do so, and its opener's script waits too, forever if no client
   * resumes it (seen with Chromium 153; in a live view nothing would).
   */
  #onCreated(target: Target): void {
    if (target.openerId !== undefined) for (const listener of this.#onWindows) listener();
    if (this.#preparations.length === 0) void this.#attach(target);
  }

  /** A target that is gone is not attached. */
  async #attach({ targetId, type, subtype }: Target): Promise<void> {
    if (type !== 'page' || subtype !== undefined || this.byTarget(targetId)) return;
    const wanted = { targetId, flatten: true };
    const attached =
      this.#attaching.get(targetId) ??
      this.#pipe.call('Target.attachToTarget', wanted).catch(() => undefined);
    this.#attaching.set(targetId, attached);
    await attached;
    this.#attaching.delete(targetId);
  }

  #onAttached(attachment: Attachment): void {
    const { sessionId, targetInfo, waitingForDebugger } = attachment;
    const { targetId, type, subtype } = targetInfo;
    // sessions that we attached by hand arrive here too
    if (type !== 'page' || subtype !== undefined || this.byTarget(targetId)) return;
    const page = openPage(this.#pipe, attachment, this.idOf(targetId));
    this.#open.set(sessionId, page);
    for (const listener of this.#onPages) listener(page);
    this.activate(targetId);
    const prepared = Promise.all(this.#preparations.map((prepare) => within(prepare(page))));
    if (!waitingForDebugger) return;
    // rejects when the page is gone
    const run = () => page.session.call('Runtime.runIfWaitingForDebugger').catch(() => undefined);
    void prepared.then(run);
  }

  #onDetached(sessionId: string): void {
    const page = this.#open.get(sessionId);
    if (!page) return;
    this.#open.delete(sessionId);
    this.#front = this.#front.filter((id) => id !== page.targetId);
    page.end();
    this.#notifyChange();
  }

  #update({ targetId, url, title }: Target): void {
    const page = this.byTarget(targetId);
    if (!page || (page.url === url && page.title === title)) return;
    Object.assign(page, { url, title });
    this.#notifyChange();
  }

  #notifyChange(): void {
    for (const listener of this.#onChanges) listener();
  }
}

function openPage(pipe: Pipe, { sessionId, targetInfo }: Attachment, id: number): OpenPage {
  const { targetId, url, title } = targetInfo;
  const { end, ...session } = openTargetSession(pipe, sessionId);
  const leave = pageOverrides(pipe).join(targetId, session);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  return {
    id,
    targetId,
    url,
    title,
    session,
    closed,
    end() {
      leave();
      end();
      resolve();
    },
  };
}

/** Settles with the promise, however it settles, or after 2 s. */
async function within(work: Promise<unknown>): Promise<void> {
  const late = sleep(PREPARE_TIMEOUT_MS, undefined, { ref: false });
  await Promise.race([work.catch(() => undefined), late]);
}
