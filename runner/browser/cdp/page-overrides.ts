/**
 * The emulated medium and the platform that a client sets on a page, repeated on the runner's own
 * sessions of that page. When a page moves to another process, Chrome 156 restores the settings of
 * each session in the order in which the sessions attached, and a session without a medium or a
 * platform removes that of an earlier session. Chrome keeps all other overrides.
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
type Override = { method: string; params: object; setBy: object };
type Page = { sessions: Set<OwnSession>; overrides: Map<string, Override> };

export type PageOverrides = {
  /** Repeats the page's overrides on this session, until the returned function is called. */
  join(targetId: string, session: OwnSession): () => void;
  /** Reads a command of a client's session; `setBy` identifies that session. */
  observe(command: Command, targetId: string, setBy: object): void;
  /** Removes what that session of a client has set: Chrome removes its part itself. */
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
  const send = ({ sessions }: Page, { method, params }: Override): void => {
    // rejects when the page is gone
    for (const session of sessions) session.call(method, params).catch(() => undefined);
  };
  const set = (page: Page, name: string, override: Override): void => {
    const value = readValue(override.params, name);
    if (value === '' && !page.overrides.delete(name)) return;
    if (value !== '') page.overrides.set(name, override);
    send(page, override);
  };
  return {
    join(targetId, session) {
      const page = pageOf(targetId);
      page.sessions.add(session);
      for (const override of page.overrides.values()) {
        send({ ...page, sessions: new Set([session]) }, override);
      }
      return () => {
        page.sessions.delete(session);
        forget(targetId, page);
      };
    },
    observe({ method, params }, targetId, setBy) {
      const override = Object.hasOwn(OVERRIDES, method) ? OVERRIDES[method] : undefined;
      if (override === undefined) return;
      const { name } = override;
      const page = pageOf(targetId);
      const value = readValue(params, name);
      set(page, name, { ...override, params: { ...override.params, [name]: value }, setBy });
      forget(targetId, page);
    },
    remove(targetId, setBy) {
      const page = pages.get(targetId);
      if (page === undefined) return;
      for (const [name, override] of page.overrides) {
        if (override.setBy !== setBy) continue;
        set(page, name, { ...override, params: { ...override.params, [name]: '' } });
      }
      forget(targetId, page);
    },
  };
}

function readValue(params: object | undefined, name: string): string {
  const value = (params as Record<string, unknown> | undefined)?.[name];
  return typeof value === 'string' && value.length <= VALUE_MAX_CHARS ? value : '';
}
