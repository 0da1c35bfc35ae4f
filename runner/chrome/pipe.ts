/**
 * Chrome's debugging pipe: JSON messages with a NUL between them. Our own commands go without a
 * session and are matched by id; a message of a session goes raw, unparsed, to whoever claimed that
 * session. Only the tail is looked at for that: Chrome writes `,"sessionId":"<32 hex>"}` last (a
 * test fails when a new Chrome does not).
 */
import type { Readable, Writable } from 'node:stream';
import { openPace } from './pace.ts';

const NUL = 0;
/** `,"sessionId":"` + 32 hex digits + `"}` */
export const TAIL_BYTES = 48;
const TAIL = /^,"sessionId":"([0-9A-F]{32})"\}$/;
/** Ours: Chrome answers a browser-level command within milliseconds. */
const CALL_TIMEOUT_MS = 10_000;
/**
 * Our own commands are numbered from here, those of clients below: Chrome answers a command for a
 * session that has just gone without the session, and such an answer must not look like ours.
 */
export const OWN_IDS = 2 ** 30;
/** Of one message of Chrome's. Ours: a page returns what it likes, and this process holds it. */
export const MESSAGE_MAX_BYTES = 128 << 20;

export type CdpEvent = { method: string; params: Record<string, unknown> };

export type Pipe = {
  /**
   * One command of our own on the browser. Rejects with Chrome's message, at its end, or after 10
   * s.
   */
  call(method: string, params?: object, timeoutMs?: number): Promise<Record<string, unknown>>;
  /** Writes one whole message; false when Chrome is behind: wait for `drained`. */
  write(message: string): boolean;
  drained(): Promise<void>;
  /**
   * Gives every message of a session to `listener`, as it came, tail included; the buffer is its
   * own. Of one that is longer than MESSAGE_MAX_BYTES only `onTooLong` hears.
   */
  claim(cdpSessionId: string, listener: (raw: Buffer) => void, onTooLong?: () => void): void;
  release(cdpSessionId: string): void;
  /** Events of the browser itself, which carry no session. */
  onEvent(listener: (event: CdpEvent) => void): () => void;
  /** Stops reading from Chrome on behalf of `who` until it resumes. Several may pause at once. */
  pause(who: object): void;
  resume(who: object): void;
  readonly isPaused: boolean;
  /** That Chrome has said so far. */
  readonly heardBytes: number;
  /** Settles when Chrome has closed its end; never rejects. */
  closed: Promise<void>;
};

type Waiter = { resolve(result: Record<string, unknown>): void; reject(error: Error): void };
type Answer = {
  id?: number;
  result?: Record<string, unknown>;
  error?: { message: string };
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
  const onEvents = new Set<(event: CdpEvent) => void>();
  const pausers = new Set<object>();
  const { promise: closed, resolve: close } = Promise.withResolvers<void>();
  let nextId = OWN_IDS;
  let isOpen = true;
  let unsaid = '';
  let heardBytes = 0;

  const flush = (): void => {
    const said = unsaid;
    unsaid = '';
    if (said !== '' && isOpen) toChrome.write(said);
  };
  /** What is written in one turn of the loop leaves in one system call. */
  const put = (message: string): boolean => {
    pace.asked();
    if (unsaid === '') process.nextTick(flush);
    unsaid += `${message}\0`;
    return !toChrome.writableNeedDrain && unsaid.length < toChrome.writableHighWaterMark;
  };
  const settle = (answer: Answer): void => {
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
    if (id === undefined) settle(JSON.parse(raw.toString()) as Answer);
    else listeners.get(id)?.receive(raw);
  };
  const skip = (tail: Buffer): void => listeners.get(cdpSessionOf(tail) ?? '')?.onTooLong?.();
  const split = splitter(receive, { skip });
  const read = (bytes: Buffer): void => {
    heardBytes += bytes.length;
    try {
      if (split(bytes)) pace.read();
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
    for (const waiter of waiters.values()) waiter.reject(new Error('chrome is gone'));
    waiters.clear();
    close();
  };
  fromChrome.on('data', read).on('close', end).on('end', end).on('error', end);
  toChrome.on('error', end).on('close', end);

  return {
    closed,
    async call(method, params = {}, timeoutMs = CALL_TIMEOUT_MS) {
      if (!isOpen) throw new Error('chrome is gone');
      const id = nextId++;
      const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
      waiters.set(id, { resolve, reject });
      const timer = setTimeout(() => {
        waiters.delete(id);
        reject(new Error(`${method} was not answered within ${timeoutMs} ms`));
      }, timeoutMs);
      put(JSON.stringify({ id, method, params }));
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
      }
    },
    write: (message) => !isOpen || put(message),
    async drained() {
      flush();
      if (!isOpen || !toChrome.writableNeedDrain) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      toChrome.once('drain', resolve);
      await Promise.race([promise, closed]);
    },
    claim(id, receive, onTooLong) {
      listeners.set(id, { receive, ...(onTooLong && { onTooLong }) });
    },
    release: (id) => void listeners.delete(id),
    onEvent(listener) {
      onEvents.add(listener);
      return () => void onEvents.delete(listener);
    },
    get isPaused() {
      return pausers.size > 0;
    },
    get heardBytes() {
      return heardBytes;
    },
    pause(who) {
      pausers.add(who);
      fromChrome.pause();
    },
    resume(who) {
      if (pausers.delete(who) && pausers.size === 0) fromChrome.resume();
    },
  };
}

/** The session that a message belongs to; undefined for the browser's own. */
export function cdpSessionOf(raw: Buffer): string | undefined {
  if (raw.length < TAIL_BYTES) return undefined;
  return TAIL.exec(raw.toString('latin1', raw.length - TAIL_BYTES))?.[1];
}

/**
 * Cuts a stream of bytes at NULs; gives whether the last message is whole. The parts of a long one
 * are joined once, when its end has come. Of one that is too long nothing is kept: `skip` gets its
 * last bytes when it is over.
 */
export function splitter(
  receive: (message: Buffer) => void,
  { skip, maxBytes = MESSAGE_MAX_BYTES }: { skip(tail: Buffer): void; maxBytes?: number },
): (bytes: Buffer) => boolean {
  let parts: Buffer[] = [];
  let held = 0; // bytes of the message that has begun
  const keep = (bytes: Buffer): void => {
    parts.push(bytes);
    held += bytes.length;
    if (held > maxBytes)
      parts = [Buffer.from(joined(parts.slice(-TAIL_BYTES)).subarray(-TAIL_BYTES))];
  };
  return (bytes) => {
    let start = 0;
    for (let end = bytes.indexOf(NUL); end !== -1; end = bytes.indexOf(NUL, start)) {
      keep(bytes.subarray(start, end));
      const message = joined(parts);
      const isTooLong = held > maxBytes;
      parts = [];
      held = 0;
      start = end + 1;
      if (isTooLong) skip(message);
      else receive(message);
    }
    if (start < bytes.length) keep(bytes.subarray(start));
    return held === 0;
  };
}

function joined(parts: readonly Buffer[]): Buffer {
  const [only] = parts;
  return only !== undefined && parts.length === 1 ? only : Buffer.concat(parts);
}
