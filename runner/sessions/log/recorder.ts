/**
 * The protocol log of one session, taken where its relay passes messages on. Each command becomes
 * an entry together with its answer, each event worth keeping one by itself. Pure, and cheap: a
 * message is kept as text here and becomes JSON later, in batches (format.ts).
 */
import type { Command } from '../../browser/cdp/command-policy.ts';
import { answerText, commandText, eventText, idOf, isKept, methodOf, type Wire } from './filter.ts';
import { extraHeaders, remember } from './redaction.ts';

/** Commands without an answer yet. Ours: Chrome answers all but those of a hung page. */
const PENDING_MAX = 5_000;
/** Of their text, all sessions of a log together. */
const PENDING_MAX_BYTES = 8 << 20;
/** Of what is ready and not taken, because core is away: what comes then is lost. Ours. */
const READY_MAX_BYTES = 8 << 20;
/** In bytes: what an entry costs beside its text. */
const ENTRY_BYTES = 256;

/** One message: when, and its text as it was on the wire. */
export type Side = { at: number; text: string };
export type Entry = {
  method: string;
  pageId: number;
  /** The command, or the event. */
  request: Side;
  /** Of the command: JSON on one line. */
  params?: string;
  /** The answer; absent for an event, or when none came. */
  response?: Side;
};

/** One CDP session of a client. */
export type SessionRecorder = {
  /** The page's number, which the sessions below it inherit. */
  readonly pageId: number;
  /** A command of the client; its params are parsed when it is one that is judged by them. */
  onCommand(command: Command, wire: Wire, at: number): void;
  /** What the client is told: an answer, or an event. */
  onMessage(raw: Buffer, at: number): void;
  /** It was detached: what waits gets no answer. */
  end(): void;
};

export type ProtocolRecorder = {
  session(pageId: number): SessionRecorder;
  /** The number of a page target. */
  pageIdOf(targetId: string): number;
  /** Tells the session's user something of ours. */
  warn(message: string, at: number): void;
  /** How many entries are ready. */
  readonly ready: number;
  /** Up to so many, and about so many bytes, oldest first; they are not kept here any more. */
  take(max: number, maxBytes: number): Entry[];
  /** Nothing more comes: what waits gets no answer, what is ready can be taken. */
  end(): void;
  /** Keeps nothing from now on. */
  stop(): void;
};

export type ProtocolRecorderOptions = {
  pageIdOf(targetId: string): number;
  /** An entry is ready; so many entries and bytes wait to be taken. */
  onReady(count: number, bytes: number): void;
  /** Takes the names of headers that a client sets, which are secrets in events too. */
  secretHeaders: Set<string>;
};

type Waiting = Required<Pick<Entry, 'method' | 'request' | 'params'>>;

export function openProtocolRecorder({
  pageIdOf,
  onReady,
  secretHeaders,
}: ProtocolRecorderOptions): ProtocolRecorder {
  let ready: Entry[] = [];
  let bytes = 0;
  let lost = 0;
  let pendingBytes = 0;
  let isOff = false;
  const sessions = new Set<SessionRecorder>();

  const add = (entry: Entry): void => {
    if (isOff) return;
    if (bytes > READY_MAX_BYTES) {
      lost += 1;
      return;
    }
    ready.push(entry);
    bytes += bytesOf(entry);
    onReady(ready.length, bytes);
  };
  const warn = (message: string, at: number): void => {
    const method = 'Tabern.warning';
    const text = JSON.stringify({ method, params: { message } });
    add({ method, pageId: 0, request: { at, text } });
  };

  function session(pageId: number): SessionRecorder {
    const waiting = new Map<number, Waiting>();
    const settle = (id: number, response: Side | undefined): void => {
      const found = waiting.get(id);
      if (found === undefined) return;
      waiting.delete(id);
      pendingBytes -= found.request.text.length;
      add({ ...found, pageId, ...(response && { response }) });
    };
    const recorder: SessionRecorder = {
      pageId,
      onCommand(command, wire, at) {
        if (isOff) return;
        const { id, method } = command;
        if (waiting.size >= PENDING_MAX || waiting.has(id)) {
          settle(waiting.has(id) ? id : (waiting.keys().next().value ?? id), undefined);
        }
        remember(secretHeaders, extraHeaders(command));
        const { params, text } = commandText(command, wire, pendingBytes > PENDING_MAX_BYTES);
        pendingBytes += text.length;
        waiting.set(id, { method, params, request: { at, text } });
      },
      onMessage(raw, at) {
        if (isOff) return;
        const method = methodOf(raw);
        if (method !== undefined) {
          if (isKept(method))
            add({ method, pageId, request: { at, text: eventText(method, raw) } });
        } else {
          const id = idOf(raw);
          const asked = waiting.get(id);
          if (asked) settle(id, { at, text: answerText(asked.method, id, raw) });
        }
      },
      end() {
        sessions.delete(recorder);
        for (const id of [...waiting.keys()]) settle(id, undefined);
      },
    };
    sessions.add(recorder);
    return recorder;
  }

  return {
    session,
    pageIdOf,
    warn,
    get ready() {
      return ready.length;
    },
    take(max, maxBytes) {
      let count = 0;
      let size = 0;
      for (const entry of ready.slice(0, max)) {
        if (size > maxBytes) break;
        size += bytesOf(entry);
        count += 1;
      }
      const taken = ready.slice(0, count);
      ready = ready.slice(count);
      bytes -= size;
      if (lost > 0) {
        const at = taken.at(-1)?.request.at ?? 0;
        const said = `${lost} entries were not kept: the log could not be sent in time`;
        lost = 0;
        warn(said, at);
      }
      return taken;
    },
    end() {
      for (const recorder of [...sessions]) recorder.end();
    },
    stop() {
      isOff = true;
      ready = [];
      bytes = 0;
    },
  };
}

function bytesOf({ request, response }: Entry): number {
  return request.text.length + (response?.text.length ?? 0) + ENTRY_BYTES;
}
