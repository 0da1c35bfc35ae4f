/**
 * The emulated medium and the platform that a client sets on a page, repeated on the runner's own
 * sessions of that page. When a page moves to another process, Chrome 156 restores the settings of
 * each session in the order in which the sessions attached, and a session without a medium or a
 * platform removes that of an earlier session. A session that ends removes them at once. Chrome
 * keeps all other overrides.
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
const OVERRIDES: Readonly<Record<string, Repeated>> = {
  'Emulation.setEmulatedMedia': MEDIA,
  'Emulation.setUserAgentOverride': PLATFORM,
  'Network.setUserAgentOverride': PLATFORM,
};

type Command = { method: string; params?: Record<string, unknown> | undefined };
/** Of one page, on a session of the runner. */
type OwnSession = { call(method: string, params: object): Promise<unknown> };
/** The values by the clients' sessions that set them, the newest last. */
type Override = { repeated: Repeated; values: Map<object, string> };
type Page = { sessions: Set<OwnSession>; overrides: Map<string, Override> };

export type PageOverrides = {
  /**
   * Repeats the page's overrides on this session. The returned function is called when the session
   * has ended in Chrome, which removes the overrides: the other sessions set them again.
   */
  join(targetId: string, session: OwnSession): () => void;
  /** Reads a command of a client's session; `setBy` identifies that session. */
  observe(command: Command, targetId: string, setBy: object): void;
  /** Forgets what that session of a client has set; the newest value of another one is left. */
  remove(targetId: string, setBy: object): void;
};

const opened = new WeakMap<Pipe, PageOverrides>();

/** Whether a command sets an override that `observe` repeats. */
export function isOverride(method: string): boolean {
  return Object.hasOwn(OVERRIDES, method);
}

/** One for each Chrome. */
export function pageOverrides(pipe: Pipe): PageOverrides {
  const overrides = opened.get(pipe) ?? openOverrides();
  opened.set(pipe, overrides);
  return overrides;
}

function openOverrides(): PageOverrides {
  const pages = new Map<string, Page>();
  const pageOf = (targetId: string): Page => {
    const page = pages.get(targetId) ?? { sessions: new Set(), overrides: new Map() };
    pages.set(targetId, page);
    return page;
  };
  const forget = (targetId: string, { sessions, overrides }: Page): void => {
    if (sessions.size === 0 && overrides.size === 0) pages.delete(targetId);
  };
  return {
    join(targetId, session) {
      const page = pageOf(targetId);
      page.sessions.add(session);
      for (const override of page.overrides.values()) repeat([session], override);
      return () => {
        page.sessions.delete(session);
        for (const override of page.overrides.values()) repeat(page.sessions, override);
        forget(targetId, page);
      };
    },
    observe({ method, params }, targetId, setBy) {
      const repeated = Object.hasOwn(OVERRIDES, method) ? OVERRIDES[method] : undefined;
      if (repeated === undefined) return;
      const { name } = repeated;
      const page = pageOf(targetId);
      const override = page.overrides.get(name) ?? { repeated, values: new Map() };
      const wasSet = override.values.size > 0;
      const value = readValue(params, name);
      // without a value Chrome removes the override, whichever session has set it
      if (value === '') override.values.clear();
      override.values.delete(setBy);
      if (value !== '') override.values.set(setBy, value);
      if (wasSet || value !== '') repeat(page.sessions, override);
      keep(page, override);
      forget(targetId, page);
    },
    remove(targetId, setBy) {
      const page = pages.get(targetId);
      if (page === undefined) return;
      for (const override of page.overrides.values()) {
        if (!override.values.delete(setBy)) continue;
        repeat(page.sessions, override);
        keep(page, override);
      }
      forget(targetId, page);
    },
  };
}

function keep({ overrides }: Page, override: Override): void {
  if (override.values.size > 0) overrides.set(override.repeated.name, override);
  else overrides.delete(override.repeated.name);
}

/** Sets the newest value, or none. */
function repeat(sessions: Iterable<OwnSession>, { repeated, values }: Override): void {
  const { name, method, params } = repeated;
  const value = [...values.values()].at(-1) ?? '';
  // rejects when the page is gone
  for (const one of sessions) one.call(method, { ...params, [name]: value }).catch(() => undefined);
}

function readValue(params: object | undefined, name: string): string {
  const value = (params as Record<string, unknown> | undefined)?.[name];
  return typeof value === 'string' && value.length <= VALUE_MAX_CHARS ? value : '';
}
