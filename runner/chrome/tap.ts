/**
 * The protocol log of one session, taken where its relay passes messages on. Each command becomes
 * an entry together with its answer, each event worth keeping one by itself. Pure, and cheap: a
 * message is kept as text here and becomes JSON later, in batches (tap-lines.ts).
 */
import type { Command } from './police.ts';
import { extraHeaders, isSecret } from './tap-secrets.ts';

/** Of one message. Ours: a screenshot has megabytes that nobody reads in a log. */
export const BODY_MAX_BYTES = 64 << 10;
/** How much of a longer message is kept. */
const HEAD_BYTES = 1 << 10;
/** Commands of a session without an answer yet. Ours: Chrome answers all but those of a hung page. */
const PENDING_MAX = 5_000;
/** Of their text, all sessions of a log together. */
const PENDING_MAX_BYTES = 8 << 20;

/** What the log is about: which page did what, and what went wrong there. reference.md 4.4. */
const KEPT_DOMAINS: ReadonlySet<string> = new Set(['Page', 'Target', 'Inspector']);
const KEPT: ReadonlySet<string> = new Set([
  'Browser.downloadWillBegin',
  'Log.entryAdded',
  'Network.loadingFailed',
  'Network.loadingFinished',
  'Network.requestServedFromCache',
  'Network.requestWillBeSent',
  'Network.responseReceived',
  'Network.webSocketClosed',
  'Network.webSocketCreated',
  'Network.webSocketFrameError',
  'Runtime.consoleAPICalled',
  'Runtime.exceptionThrown',
]);
/** Of the kept domains these are data, not facts. */
const DROPPED: ReadonlySet<string> = new Set([
  'Page.compilationCacheProduced',
  'Page.screencastFrame',
  'Target.receivedMessageFromTarget',
]);

const QUOTE = 0x22;
const ANSWER = Buffer.from('{"id":');
const EVENT = Buffer.from('{"method":"');

/** One message: when, and its text as it was on the wire. */
export type Side = { at: number; text: string };
export type Entry = {
  method: string;
  pageId: number;
  /** The command, or the event. */
  request: Side;
  /** Of the command: as JSON.parse gave them. */
  params?: unknown;
  /** The answer; absent for an event, or when none came. */
  response?: Side;
};

/** One CDP session of a client. */
export type TappedSession = {
  /** The page's number, which the sessions below it inherit. */
  readonly pageId: number;
  /** A command of the client, and its text. */
  command(command: Command, text: string, at: number): void;
  /** What the client is told: an answer, or an event. */
  said(raw: Buffer, at: number): void;
  /** It was detached: what waits gets no answer. */
  end(): void;
};

export type Tap = {
  session(pageId: number): TappedSession;
  /** The number of a page target. */
  pageIdOf(targetId: string): number;
  /** Tells the session's user something of ours. */
  warn(message: string, at: number): void;
  /** What is ready, oldest first; it is not kept here any more. */
  take(): Entry[];
  /** Keeps nothing from now on. */
  stop(): void;
};

export type TapOptions = {
  pageIdOf(targetId: string): number;
  /** An entry is ready; so many entries and bytes wait to be taken. */
  onReady(count: number, bytes: number): void;
  /** Names of headers that a client has set, which are secrets in events too. */
  secretHeaders: Set<string>;
};

type Waiting = Required<Pick<Entry, 'method' | 'request'>> & { params: unknown };

export function openTap({ pageIdOf, onReady, secretHeaders }: TapOptions): Tap {
  let ready: Entry[] = [];
  let bytes = 0;
  let pendingBytes = 0;
  let isOff = false;

  const add = (entry: Entry): void => {
    if (isOff) return;
    ready.push(entry);
    bytes += entry.request.text.length + (entry.response?.text.length ?? 0);
    onReady(ready.length, bytes);
  };

  function session(pageId: number): TappedSession {
    const waiting = new Map<number, Waiting>();
    const settle = (id: number, response: Side | undefined): void => {
      const found = waiting.get(id);
      if (found === undefined) return;
      waiting.delete(id);
      pendingBytes -= found.request.text.length;
      add({ ...found, pageId, ...(response && { response }) });
    };
    return {
      pageId,
      command(command, text, at) {
        if (isOff) return;
        const { id, method } = command;
        if (waiting.size >= PENDING_MAX || waiting.has(id)) {
          settle(waiting.has(id) ? id : (waiting.keys().next().value ?? id), undefined);
        }
        for (const name of extraHeaders(command)) secretHeaders.add(name);
        const isLong = text.length > BODY_MAX_BYTES || pendingBytes > PENDING_MAX_BYTES;
        const cut = isLong ? truncated(method, text.length, text.slice(0, HEAD_BYTES)) : undefined;
        const params = cut ?? command.params ?? {};
        const kept = cut ? JSON.stringify({ id, method, params }) : text;
        pendingBytes += kept.length;
        waiting.set(id, { method, params, request: { at, text: kept } });
      },
      said(raw, at) {
        if (isOff) return;
        if (startsWith(raw, EVENT)) {
          const method = raw.toString('latin1', EVENT.length, raw.indexOf(QUOTE, EVENT.length));
          if (isKept(method))
            add({ method, pageId, request: { at, text: eventText(method, raw) } });
        } else {
          const id = idOf(raw);
          const method = waiting.get(id)?.method;
          if (method !== undefined) settle(id, { at, text: answerText(method, id, raw) });
        }
      },
      end() {
        for (const id of [...waiting.keys()]) settle(id, undefined);
      },
    };
  }

  return {
    session,
    pageIdOf,
    warn(message, at) {
      const method = 'Tabern.warning';
      const text = JSON.stringify({ method, params: { message } });
      add({ method, pageId: 0, request: { at, text } });
    },
    take() {
      const taken = ready;
      ready = [];
      bytes = 0;
      return taken;
    },
    stop() {
      isOff = true;
      ready = [];
      bytes = 0;
    },
  };
}

function isKept(method: string): boolean {
  if (KEPT.has(method)) return true;
  return KEPT_DOMAINS.has(method.slice(0, method.indexOf('.'))) && !DROPPED.has(method);
}

function eventText(method: string, raw: Buffer): string {
  if (raw.length <= BODY_MAX_BYTES) return raw.toString();
  const params = truncated(method, raw.length, raw.toString('utf8', 0, HEAD_BYTES));
  return JSON.stringify({ method, params });
}

function answerText(method: string, id: number, raw: Buffer): string {
  if (raw.length <= BODY_MAX_BYTES) return raw.toString();
  const result = truncated(method, raw.length, raw.toString('utf8', 0, HEAD_BYTES));
  return JSON.stringify({ id, result });
}

/** Stands for params or a result that are too long; a secret has no beginning either. */
function truncated(method: string, length: number, head: string): Record<string, unknown> {
  const why = `${length} bytes: a message of more than ${BODY_MAX_BYTES} is not kept whole`;
  return isSecret(method) ? { truncated: why } : { truncated: why, head };
}

/** Chrome writes the id first, but for errors of a session that has gone. */
function idOf(raw: Buffer): number {
  if (!startsWith(raw, ANSWER)) {
    return raw.length > BODY_MAX_BYTES ? Number.NaN : Number(idIn(raw.toString()));
  }
  let id = 0;
  for (let at = ANSWER.length; ; at += 1) {
    const digit = (raw[at] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return id;
    id = 10 * id + digit;
  }
}

function idIn(text: string): string | undefined {
  return /"id":(-?\d+)\}?(?:,|$)/.exec(text)?.[1];
}

function startsWith(raw: Buffer, head: Buffer): boolean {
  return raw.length >= head.length && raw.compare(head, 0, head.length, 0, head.length) === 0;
}
