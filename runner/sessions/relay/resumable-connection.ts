/**
 * A connection that outlives its WebSockets (proto/spec/resume.md). Messages are numbered in both
 * directions by counting. Those that the client has not acknowledged are kept, and sent again on
 * its next WebSocket.
 *   connected <-> held -> closed, once
 * It is held when a WebSocket ends without a close frame, for `resumeMs` at most.
 */
import { openPauses } from '../../browser/cdp/pauses.ts';
import { startsWith } from '../../browser/cdp/split.ts';
import type { Closed, Connection } from './connection.ts';
import { ReplayBuffer } from './replay-buffer.ts';

/** Of a message that is not numbered: an acknowledgement, in both directions. */
const RECEIVED_HEAD = Buffer.from('{"method":"Tabern.received"');
const RECEIVED = /^\{"method":"Tabern\.received","params":\{"received":(\d{1,15})\}\}$/;
const RECEIVED_MAX_BYTES = 80;
/** Ours: RFC 6455 7.4.2 leaves 4000 to 4999 to applications. */
export const MALFORMED = 4400;
export const NO_SUCH_MESSAGE = 'no such number of received messages';
const LATE = 'the time to resume has passed';
const LEFT = 'the client has left';
const REPLACED = 'the connection was resumed by another WebSocket';
const POLICY_VIOLATION = 1008;

export type ResumableConnection = Connection & {
  /** Memory of the messages that are kept. */
  readonly bytes: number;
  canContinueAfter(received: number): boolean;
  /** Goes on over this WebSocket, whose client has received so many messages. */
  resume(connection: Connection, received: number): void;
  /** It cannot be resumed any more: its WebSocket is closed by another part of the runner. */
  revoke(reason: string): void;
  /** Why it cannot be resumed; undefined while it can. */
  readonly endReason: string | undefined;
};

type Options = {
  first: Connection;
  /** What the first WebSocket receives first. */
  greeting: Buffer;
  resumeMs: number;
  /** It is held, or connected again. */
  onChange(isConnected: boolean): void;
  /** The memory of the kept messages has changed. */
  onBytes(delta: number): void;
};

export function openResumableConnection(options: Options): ResumableConnection {
  const { first, greeting, resumeMs, onChange, onBytes } = options;
  const me = {};
  const buffer = new ReplayBuffer();
  const { promise: closed, resolve } = Promise.withResolvers<Closed>();
  let current: Connection | undefined;
  let listener: Parameters<Connection['onMessage']>[0] | undefined;
  let received = 0;
  let held: NodeJS.Timeout | undefined;
  let endReason: string | undefined;
  const reading = openPauses({
    pause: () => current?.reading.pause(me),
    resume: () => current?.reading.resume(me),
  });
  const change = (act: () => void): void => {
    const before = buffer.bytes;
    act();
    onBytes(buffer.bytes - before);
  };
  const acknowledge = (count: number): void => change(() => buffer.acknowledge(count));
  /** From now on it cannot be resumed, and nothing is kept. */
  const refuseMore = (reason: string): void => {
    endReason ??= reason;
    clearTimeout(held);
    acknowledge(buffer.sent);
  };
  const finish = (reason: string, how: Closed): void => {
    refuseMore(reason);
    resolve(how);
  };
  const hold = (): void => {
    held = setTimeout(() => finish(LATE, { isBroken: false, hasFailed: false }), resumeMs);
    onChange(false);
    onBytes(0); // those who are held make room first
  };
  const attach = (connection: Connection, head: Buffer): void => {
    current = connection;
    if (reading.isPaused) connection.reading.pause(me);
    connection.onMessage((text, isBinary) => {
      if (current === connection) listener?.(text, isBinary);
    });
    void connection.closed.then((how) => {
      if (current !== connection) return;
      current = undefined;
      if (how.isBroken && !how.hasFailed && endReason === undefined) hold();
      else finish(LEFT, how);
    });
    connection.send(head);
    for (const message of buffer.messages) connection.send(message);
  };
  const close = (code: number, reason: string): void => {
    refuseMore(reason);
    if (current !== undefined) current.close(code, reason);
    else resolve({ isBroken: false, hasFailed: false });
  };
  attach(first, greeting);
  return {
    reading,
    closed,
    close,
    onMessage(added) {
      listener = added;
    },
    send(message) {
      if (endReason !== undefined) return current?.send(message);
      change(() => {
        const kept = buffer.add(message);
        current?.send(kept);
      });
    },
    takes(text) {
      if (!startsWith(text, RECEIVED_HEAD)) {
        received += 1;
        return false;
      }
      const isShort = text.length <= RECEIVED_MAX_BYTES;
      const [, count] = (isShort && RECEIVED.exec(text.toString('latin1'))) || [];
      if (count === undefined || Number(count) > buffer.sent) close(MALFORMED, NO_SUCH_MESSAGE);
      else {
        acknowledge(Number(count));
        current?.send(event('Tabern.received', { received }));
      }
      return true;
    },
    ping: () => current?.ping(),
    canContinueAfter: (count) => buffer.canContinueAfter(count),
    resume(connection, count) {
      clearTimeout(held);
      acknowledge(count);
      const old = current;
      attach(connection, event('Tabern.resumed', { received }));
      old?.close(POLICY_VIOLATION, REPLACED); // half-open, or still in use by somebody else
      if (old === undefined) onChange(true);
    },
    revoke(reason) {
      refuseMore(reason);
      if (current === undefined) resolve({ isBroken: false, hasFailed: false });
    },
    get bytes() {
      return buffer.bytes;
    },
    get endReason() {
      return endReason;
    },
    get isOpen() {
      return endReason === undefined;
    },
    get isConnected() {
      return current !== undefined;
    },
  };
}

/** An event of the protocol of resumption, which is not numbered. */
export function event(method: string, params: object): Buffer {
  return Buffer.from(JSON.stringify({ method, params }));
}
