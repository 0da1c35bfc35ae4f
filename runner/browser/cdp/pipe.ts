/**
 * Chrome's debugging pipe: JSON messages separated by NUL. Our own browser-level commands carry no
 * session id and are matched by id. A message of a CDP session is passed on raw, unparsed, to the
 * listener of that session; only its tail is read for that, because Chrome writes
 * `,"sessionId":"<32 hex>"}` last (a test fails when a new Chrome does not).
 */
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { openPauses, type Pauses } from './pauses.ts';
import { openPace } from './read-pacing.ts';
import { cdpSessionOf, NUL, splitter } from './split.ts';
import { Share } from './thread-share.ts';

/**
 * Ours: Chrome responds to a browser-level command within milliseconds, or, under load, seconds.
 */
const CALL_TIMEOUT_MS = 30_000;
/** Chrome's error code for a command on an unknown session. The response carries no session id. */
const NO_SESSION = -32001;
/**
 * Ids of commands on sessions, all of 11 characters; those of browser-level commands count from 1.
 */
const SESSIONS_ID_MAX = -1_000_000_000;
const INT32_MIN = -(2 ** 31);
/** Messages up to this total are joined into one buffer; longer ones are not copied. */
const JOINED_MAX_BYTES = 64 << 10;
const END = Buffer.from([NUL]);

type CdpEvent = { method: string; params: Record<string, unknown> };

/** `pause` and `resume`: reading from Chrome. */
export type Pipe = Pauses & {
  /** A browser-level command. Rejects with Chrome's error, when the pipe closes, or after 30 s. */
  call(method: string, params?: object, timeoutMs?: number): Promise<Record<string, unknown>>;
  /**
   * A unique id for a command sent with `write`, so that Chrome's response identifies its sender
   * even when it carries no session id.
   */
  newId(): number;
  /** Writes one whole message; false when Chrome is behind: wait for `drained`. */
  write(message: Buffer): boolean;
  drained(): Promise<void>;
  /**
   * Passes every message of a session to `listener`, unchanged, tail included; the buffer is not
   * shared. A message longer than MESSAGE_MAX_BYTES is dropped and reported by `onTooLong`.
   */
  claim(cdpSessionId: string, listener: (raw: Buffer) => void, onTooLong?: () => void): void;
  release(cdpSessionId: string): void;
  /** Called with Chrome's response to a command on an unknown session; it has no session id. */
  onUnknownSession(listener: (id: number, raw: Buffer) => void): () => void;
  /** Events of the browser itself, which carry no session id. */
  onEvent(listener: (event: CdpEvent) => void): () => void;
  /** Bytes received from Chrome so far. */
  readonly bytesReceived: number;
  /** Share of the thread's time: reading pauses while the share rests. */
  readonly share: Share;
  /** Settles when Chrome has closed its end; never rejects. */
  closed: Promise<void>;
};

type Answer = Partial<CdpEvent> & {
  id?: number;
  result?: Record<string, unknown>;
  error?: { message: string; code?: number };
};

/** `toChrome` is Chrome's fd 3, `fromChrome` its fd 4. */
export function openPipe(
  toChrome: Writable,
  fromChrome: Readable,
  pace = openPace(fromChrome),
): Pipe {
  const waiters = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  const listeners = new Map<string, { receive(raw: Buffer): void; onTooLong?: () => void }>();
  const onUnknown = new Set<(id: number, raw: Buffer) => void>();
  const onEvents = new Set<(event: CdpEvent) => void>();
  const reading = openPauses(fromChrome);
  const share = new Share();
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  let nextId = 1;
  let sessionsId = SESSIONS_ID_MAX;
  let isOpen = true;
  let queued: Buffer[] = [];
  let queuedBytes = 0;
  let bytesReceived = 0;
  let draining: Promise<unknown> | undefined;

  const flush = (): void => {
    if (queuedBytes === 0) return;
    const buffers = queuedBytes > JOINED_MAX_BYTES ? queued : [Buffer.concat(queued)];
    queued = [];
    queuedBytes = 0;
    if (!isOpen) return;
    toChrome.cork();
    for (const bytes of buffers) toChrome.write(bytes);
    toChrome.uncork();
  };
  /** Messages written in one turn of the loop leave in one system call. */
  const put = (message: Buffer): boolean => {
    pace.onCommand();
    if (queuedBytes === 0) process.nextTick(flush);
    queued.push(message, END);
    queuedBytes += message.length + 1;
    return !toChrome.writableNeedDrain && queuedBytes < toChrome.writableHighWaterMark;
  };
  const settle = (raw: Buffer): void => {
    const { id, method, params = {}, result = {}, error } = JSON.parse(raw.toString()) as Answer;
    if (id === undefined) {
      if (method !== undefined) for (const listener of onEvents) listener({ method, params });
    } else if (error?.code === NO_SESSION) {
      for (const listener of onUnknown) listener(id, raw);
    } else if (error) waiters.get(id)?.reject(new Error(error.message));
    else waiters.get(id)?.resolve(result);
  };
  const receive = (raw: Buffer): void => {
    pace.onMessage(raw);
    const id = cdpSessionOf(raw);
    if (id === undefined) settle(raw);
    else listeners.get(id)?.receive(raw);
  };
  const skip = (tail: Buffer): void => listeners.get(cdpSessionOf(tail) ?? '')?.onTooLong?.();
  const split = splitter(receive, { skip });
  const read = (bytes: Buffer): void => {
    bytesReceived += bytes.length;
    try {
      if (share.spend(() => split(bytes))) pace.onRead();
    } catch {
      // only an exploited Chrome writes an unbounded message: closing its pipe ends it
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
      const waiter = Promise.withResolvers<Record<string, unknown>>();
      waiters.set(id, waiter);
      const late = `${method} got no response within ${timeoutMs} ms`;
      const timer = setTimeout(() => waiter.reject(new Error(late)), timeoutMs);
      put(Buffer.from(JSON.stringify({ id, method, params })));
      try {
        return await waiter.promise;
      } finally {
        clearTimeout(timer);
        waiters.delete(id);
      }
    },
    newId() {
      // the range lasts for days of uninterrupted commands
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
    get bytesReceived() {
      return bytesReceived;
    },
  };
}
