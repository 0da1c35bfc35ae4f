/**
 * Records the protocol log of one session from the messages that its relay forwards. Each command
 * becomes one entry together with its response; each event worth keeping becomes one entry. Pure,
 * and cheap: messages are stored as text and formatted as JSON later, in batches (format.ts).
 */
import type { Command } from '../../browser/cdp/command-policy.ts';
import { answerText, commandText, eventText, idOf, isKept, methodOf, type Wire } from './filter.ts';
import { extraHeaders, remember } from './redaction.ts';

/** Commands without a response yet. Ours: Chrome responds to all except those of a hung page. */
const PENDING_MAX = 5_000;
/** Of their text, for all sessions of a log together. */
const PENDING_MAX_BYTES = 8 << 20;
/**
 * Of entries that are ready and not taken, because core is unreachable and the spool (spool.ts) has
 * no room; further entries are dropped. Ours.
 */
const READY_MAX_BYTES = 8 << 20;
/** In bytes: overhead of an entry besides its text. */
const ENTRY_BYTES = 256;

/** One message: its time, and its text as sent. */
export type Side = { at: number; text: string };
export type Entry = {
  method: string;
  pageId: number;
  /** The command, or the event. */
  request: Side;
  /** Of the command: JSON on one line. */
  params?: string;
  /** The response; absent for an event, or when none arrived. */
  response?: Side;
};

/** Records one CDP session of a client. */
export type SessionRecorder = {
  /** The page's number, which the sessions below it inherit. */
  readonly pageId: number;
  /** A command of the client; its params are parsed only if the policy inspects them. */
  onCommand(command: Command, wire: Wire, at: number): void;
  /** A message to the client: a response, or an event. */
  onMessage(raw: Buffer, at: number): void;
  /** The session was detached: pending commands get no response. */
  end(): void;
};

export type ProtocolRecorder = {
  session(pageId: number): SessionRecorder;
  /** The number of a page target. */
  pageIdOf(targetId: string): number;
  /** Adds a warning of ours to the session's log. */
  warn(message: string, at: number): void;
  /** Number of entries that are ready. */
  readonly ready: number;
  /** Of these entries. */
  readonly bytes: number;
  /** Removes and returns the oldest entries: at most `max`, and about `maxBytes`. */
  take(max: number, maxBytes: number): Entry[];
  /** Ends recording: pending commands get no response; ready entries can still be taken. */
  end(): void;
  /** Drops everything from now on. */
  stop(): void;
};

type ProtocolRecorderOptions = {
  pageIdOf(targetId: string): number;
  /** An entry is ready, or was dropped; `count` entries of `bytes` bytes wait to be taken. */
  onReady(count: number, bytes: number): void;
  /** Collects the names of headers that a client sets: they are secret in events too. */
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
    } else {
      ready.push(entry);
      bytes += bytesOf(entry);
    }
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
    get bytes() {
      return bytes;
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
        const message = `${lost} entries were dropped: the log could not be sent in time`;
        lost = 0;
        warn(message, at);
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
