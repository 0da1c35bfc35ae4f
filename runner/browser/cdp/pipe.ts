/**
 * Chrome's debugging pipe: JSON messages with a NUL between them. Our own commands go without a
 * session and are matched by id; a message of a session goes raw, unparsed, to whoever claimed that
 * session. Only the tail is looked at for that: Chrome writes `,"sessionId":"<32 hex>"}` last (a
 * test fails when a new Chrome does not).
 */
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { openPauses } from './pauses.ts';
import { openPace } from './read-pacing.ts';
import { cdpSessionOf, NUL, splitter } from './split.ts';
import { openShare, type Share } from './thread-share.ts';

/** Ours: Chrome answers a browser-level command within milliseconds, or, under load, seconds. */
const CALL_TIMEOUT_MS = 30_000;
/** Chrome's answer to a command for a session that is not there. It carries no session. */
const NO_SESSION = -32001;
/** Of commands on sessions, all of 11 characters; those of the browser itself count from 1. */
const SESSIONS_ID_MAX = -1_000_000_000;
const INT32_MIN = -(2 ** 31);
/** As much as leaves in one buffer; longer messages are not copied. */
const JOINED_MAX_BYTES = 64 << 10;
const END = Buffer.from([NUL]);
export type CdpEvent = { method: string; params: Record<string, unknown> };

export type Pipe = {
  /**
   * One command of our own on the browser. Rejects with Chrome's message, at its end, or after 30
   * s.
   */
  call(method: string, params?: object, timeoutMs?: number): Promise<Record<string, unknown>>;
  /**
   * For a command that `write` sends: no other command has it, so that Chrome's answer names its
   * sender also where it names no session.
   */
  newId(): number;
  /** Writes one whole message; false when Chrome is behind: wait for `drained`. */
  write(message: Buffer): boolean;
  drained(): Promise<void>;
  /**
   * Gives every message of a session to `listener`, as it came, tail included; the buffer is its
   * own. Of one that is longer than MESSAGE_MAX_BYTES only `onTooLong` hears.
   */
  claim(cdpSessionId: string, listener: (raw: Buffer) => void, onTooLong?: () => void): void;
  release(cdpSessionId: string): void;
  /** Chrome knew no session of that id for a command: its answer, which carries none. */
  onUnknownSession(listener: (id: number, raw: Buffer) => void): () => void;
  /** Events of the browser itself, which carry no session. */
  onEvent(listener: (event: CdpEvent) => void): () => void;
  /** Stops reading from Chrome on behalf of `who` until it resumes. Several may pause at once. */
  pause(who: object): void;
  resume(who: object): void;
  readonly isPaused: boolean;
  /** That Chrome has said so far. */
  readonly heardBytes: number;
  /** Of the thread's time: reading stops while it rests. */
  readonly share: Share;
  /** Settles when Chrome has closed its end; never rejects. */
  closed: Promise<void>;
};

type Waiter = { resolve(result: Record<string, unknown>): void; reject(error: Error): void };
type Answer = {
  id?: number;
  result?: Record<string, unknown>;
  error?: { message: string; code?: number };
  method?: string;
  params?: Record<string, unknown>;
};

/** `toChrome` is Chrome's fd 3, `fromChrome` its fd 4. */
export function openPipe(
  toChrome: Writable,
  fromChrome: Readable,
  pace = openPace(fromChrome),
): Pipe {
  const waiters = new Map<number, Waiter>();
  const listeners = new Map<string, { receive(raw: Buffer): void; onTooLong?: () => void }>();
  const onUnknown = new Set<(id: number, raw: Buffer) => void>();
  const onEvents = new Set<(event: CdpEvent) => void>();
  const reading = openPauses(fromChrome);
  const share = openShare();
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  let nextId = 1;
  let sessionsId = SESSIONS_ID_MAX;
  let isOpen = true;
  let unsaid: Buffer[] = [];
  let unsaidBytes = 0;
  let heardBytes = 0;
  let draining: Promise<unknown> | undefined;

  const flush = (): void => {
    const said = unsaidBytes > JOINED_MAX_BYTES ? unsaid : [Buffer.concat(unsaid)];
    const isAny = unsaidBytes > 0;
    unsaid = [];
    unsaidBytes = 0;
    if (!isAny || !isOpen) return;
    toChrome.cork();
    for (const bytes of said) toChrome.write(bytes);
    toChrome.uncork();
  };
  /** What is written in one turn of the loop leaves in one system call. */
  const put = (message: Buffer): boolean => {
    pace.asked();
    if (unsaidBytes === 0) process.nextTick(flush);
    unsaid.push(message, END);
    unsaidBytes += message.length + 1;
    return !toChrome.writableNeedDrain && unsaidBytes < toChrome.writableHighWaterMark;
  };
  const settle = (raw: Buffer): void => {
    const answer = JSON.parse(raw.toString()) as Answer;
    if (answer.error?.code === NO_SESSION && answer.id !== undefined) {
      for (const listener of onUnknown) listener(answer.id, raw);
      return;
    }
    const waiter = answer.id === undefined ? undefined : waiters.get(answer.id);
    if (waiter === undefined) {
      const { method, params = {} } = answer;
      if (method !== undefined) for (const listener of onEvents) listener({ method, params });
      return;
    }
    waiters.delete(answer.id ?? 0);
    if (answer.error) waiter.reject(new Error(answer.error.message));
    else waiter.resolve(answer.result ?? {});
  };
  const receive = (raw: Buffer): void => {
    pace.heard(raw);
    const id = cdpSessionOf(raw);
    if (id === undefined) settle(raw);
    else listeners.get(id)?.receive(raw);
  };
  const skip = (tail: Buffer): void => listeners.get(cdpSessionOf(tail) ?? '')?.onTooLong?.();
  const split = splitter(receive, { skip });
  const read = (bytes: Buffer): void => {
    heardBytes += bytes.length;
    try {
      if (share.spend(() => split(bytes))) pace.read();
    } catch {
      // no Chrome of ours writes that, but an exploited one: its pipe is closed, which ends it
      fromChrome.destroy();
      toChrome.destroy();
    }
  };
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    pace[Symbol.dispose]();
    share[Symbol.dispose]();
    for (const waiter of waiters.values()) waiter.reject(new Error('chrome is gone'));
    waiters.clear();
    close();
  };
  fromChrome.on('data', read).on('close', end).on('end', end).on('error', end);
  toChrome.on('error', end).on('close', end);

  share.add(reading);

  return {
    closed,
    share,
    pause: reading.pause,
    resume: reading.resume,
    async call(method, params = {}, timeoutMs = CALL_TIMEOUT_MS) {
      if (!isOpen) throw new Error('chrome is gone');
      const id = nextId++;
      const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
      waiters.set(id, { resolve, reject });
      const timer = setTimeout(() => {
        waiters.delete(id);
        reject(new Error(`${method} was not answered within ${timeoutMs} ms`));
      }, timeoutMs);
      put(Buffer.from(JSON.stringify({ id, method, params })));
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
      }
    },
    newId() {
      // the range lasts for days of commands without a pause
      sessionsId = sessionsId === INT32_MIN ? SESSIONS_ID_MAX : sessionsId - 1;
      return sessionsId;
    },
    write: (message) => !isOpen || put(message),
    async drained() {
      flush();
      if (!isOpen || !toChrome.writableNeedDrain) return;
      draining ??= Promise.race([once(toChrome, 'drain').catch(() => closed), closed]).finally(
        () => {
          draining = undefined;
        },
      );
      await draining;
    },
    claim(id, receive, onTooLong) {
      listeners.set(id, { receive, ...(onTooLong && { onTooLong }) });
    },
    release: (id) => void listeners.delete(id),
    onUnknownSession(listener) {
      onUnknown.add(listener);
      return () => void onUnknown.delete(listener);
    },
    onEvent(listener) {
      onEvents.add(listener);
      return () => void onEvents.delete(listener);
    },
    get isPaused() {
      return reading.isPaused;
    },
    get heardBytes() {
      return heardBytes;
    },
  };
}
