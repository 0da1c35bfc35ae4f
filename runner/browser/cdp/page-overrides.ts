/**
 * Keeps what a client emulates on a page: the medium (`Emulation.setEmulatedMedia`) and the
 * platform. When a page moves to another process, Chrome 156 restores the settings of each CDP
 * session in the order in which the sessions attached, and one without a medium or a platform
 * removes that of an earlier one. So the runner's own CDP sessions of the page repeat the client's
 * values. Chrome keeps all other overrides.
 */
import type { Pipe } from './pipe.ts';

/** Ours: far above a real value; a longer one is not repeated. */
const VALUE_MAX_CHARS = 1_000;

type Repeated = { name: string; method: string; params: object };

const MEDIA: Repeated = { name: 'media', method: 'Emulation.setEmulatedMedia', params: {} };
const PLATFORM: Repeated = {
  name: 'platform',
  method: 'Emulation.setUserAgentOverride',
  params: { userAgent: '' }, // required, and empty it changes no user agent
};
/** By the command that sets it: the parameter, and the command that repeats it. */
const OVERRIDES: ReadonlyMap<string, Repeated> = new Map([
  ['Emulation.setEmulatedMedia', MEDIA],
  ['Emulation.setUserAgentOverride', PLATFORM],
  ['Network.setUserAgentOverride', PLATFORM],
]);

type Command = { method: string; params?: Record<string, unknown> | undefined };
/** A session of the runner on one page. */
type OwnSession = { call(method: string, params: object): Promise<unknown> };
/** The values by the clients' sessions that set them, the newest last. */
type Override = { repeated: Repeated; values: Map<object, string> };
type Page = { sessions: Set<OwnSession>; overrides: Map<string, Override> };

const opened = new WeakMap<Pipe, PageOverrides>();

/** Whether a command sets an override that `observe` repeats. */
export function isOverride(method: string): boolean {
  return OVERRIDES.has(method);
}

/** One for each Chrome. */
export function pageOverrides(pipe: Pipe): PageOverrides {
  const overrides = opened.get(pipe) ?? new PageOverrides();
  opened.set(pipe, overrides);
  return overrides;
}

class PageOverrides {
  readonly #pages = new Map<string, Page>();

  /**
   * Repeats the page's overrides on this session. The returned function is called when the session
   * has ended in Chrome, which removes the overrides: the other sessions set them again.
   */
  join(targetId: string, session: OwnSession): () => void {
    const page = this.#pageOf(targetId);
    page.sessions.add(session);
    for (const override of page.overrides.values()) void repeat([session], override);
    return () => {
      page.sessions.delete(session);
      for (const override of page.overrides.values()) void repeatAfterEnd(page, override);
      this.#forget(targetId, page);
    };
  }

  /** Reads a command of a client's session; `setBy` identifies that session. */
  observe({ method, params }: Command, targetId: string, setBy: object): void {
    const repeated = OVERRIDES.get(method);
    if (repeated === undefined) return;
    const { name } = repeated;
    const page = this.#pageOf(targetId);
    const override = page.overrides.get(name) ?? { repeated, values: new Map() };
    const wasSet = override.values.size > 0;
    const value = readValue(params, name);
    // without a value Chrome removes the override, whichever session has set it
    if (value === '') override.values.clear();
    override.values.delete(setBy);
    if (value !== '') override.values.set(setBy, value);
    if (wasSet || value !== '') void repeat(page.sessions, override);
    keep(page, override);
    this.#forget(targetId, page);
  }

  /** Forgets what that session of a client has set; the newest value of another one is left. */
  remove(targetId: string, setBy: object): void {
    const page = this.#pages.get(targetId);
    if (page === undefined) return;
    for (const override of page.overrides.values()) {
      if (!override.values.delete(setBy)) continue;
      void repeatAfterEnd(page, override);
      keep(page, override);
    }
    this.#forget(targetId, page);
  }

  #pageOf(targetId: string): Page {
    const page = this.#pages.get(targetId) ?? { sessions: new Set(), overrides: new Map() };
    this.#pages.set(targetId, page);
    return page;
  }

  #forget(targetId: string, { sessions, overrides }: Page): void {
    if (sessions.size === 0 && overrides.size === 0) this.#pages.delete(targetId);
  }
}

function keep({ overrides }: Page, override: Override): void {
  if (override.values.size > 0) overrides.set(override.repeated.name, override);
  else overrides.delete(override.repeated.name);
}

/** Sets the newest value, or none. Resolves when the sessions have answered. */
async function repeat(
  sessions: Iterable<OwnSession>,
  { repeated, values }: Override,
): Promise<void> {
  const { name, method, params } = repeated;
  const value = [...values.values()].at(-1) ?? '';
  const own = { ...params, [name]: value };
  // rejects when the page is gone
  await Promise.allSettled([...sessions].map((one) => one.call(method, own)));
}

/**
 * Chrome 156 may say that a session has ended before the page's process has ended it, which then
 * removes a value that was repeated at once. After an answer of the page it stays.
 */
async function repeatAfterEnd(page: Page, override: Override): Promise<void> {
  await repeat(page.sessions, override);
  const { repeated } = override;
  const now = page.overrides.get(repeated.name); // a client may have changed it
  if (now !== undefined) await repeat(page.sessions, now);
}

function readValue(params: Command['params'], name: string): string {
  const value = params?.[name];
  return typeof value === 'string' && value.length <= VALUE_MAX_CHARS ? value : '';
}
