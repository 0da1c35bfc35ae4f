/**
 * What goes to one client. Messages of one turn of the event loop leave in one system call. One
 * that falls behind stops the reading of Chrome, and with it the other clients of its session, for
 * so long and no longer. Its own commands wait as well: the relay answers many of them itself.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Log } from '../../../proto/common/log.ts';
import type { Pauses } from '../../browser/cdp/pauses.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import { framed, frameHead } from './ws-frames.ts';

/** Above the first, Chrome is no longer read; below the second it is again. */
const BEHIND_BYTES = 16 << 20;
const CAUGHT_UP_BYTES = 4 << 20;
/** A client that stalls stalls the others of its session: so long and no longer. */
const STALL_MS = 30_000;
/** A longer message leaves as it is: a copy would cost more than a write of its own. */
const COPIED_MAX_BYTES = 16 << 10;
/** A close that is not answered. */
const CLOSE_TIMEOUT_MS = 2_000;

export type Outbox = Disposable & {
  /** Not to be changed after. */
  send(message: Buffer): void;
  /** Writes what waits for the end of this turn: for who closes the socket in it. */
  flush(): void;
};

/** `wire` is what the socket writes to. */
export function openOutbox(options: {
  socket: WebSocket;
  wire: Duplex;
  pipe: Pick<Pipe, 'pause' | 'resume'>;
  /** Of the client's messages. */
  reading: Pauses;
  log: Log;
}): Outbox {
  const { socket, wire, pipe, reading, log } = options;
  const me = {};
  let stall: NodeJS.Timeout | undefined;
  let waiting: Buffer[] = [];

  const flushed = (): void => {
    if (stall === undefined || wire.writableLength >= CAUGHT_UP_BYTES) return;
    clearTimeout(stall);
    stall = undefined;
    pipe.resume(me);
    reading.resume(me);
  };
  const write = (bytes: Buffer): void => {
    // who keeps up costs no callback
    const isMuch = wire.writableLength + bytes.length > CAUGHT_UP_BYTES;
    wire.write(bytes, isMuch ? flushed : undefined);
    if (stall !== undefined || wire.writableLength <= BEHIND_BYTES) return;
    pipe.pause(me);
    reading.pause(me);
    stall = setTimeout(() => {
      log.warn('a client does not read: dropped');
      socket.terminate();
    }, STALL_MS);
  };
  const flush = (): void => {
    const messages = waiting;
    waiting = [];
    // after a close frame there is no other
    if (messages.length > 0 && socket.readyState === socket.OPEN) write(framed(messages));
  };
  return {
    flush,
    send(message) {
      if (message.length <= COPIED_MAX_BYTES) {
        if (waiting.length === 0) process.nextTick(flush);
        waiting.push(message);
        return;
      }
      flush();
      if (socket.readyState !== socket.OPEN) return;
      wire.cork();
      wire.write(frameHead(message.length));
      write(message);
      wire.uncork();
    },
    [Symbol.dispose]() {
      clearTimeout(stall);
      pipe.resume(me);
      reading.resume(me);
    },
  };
}

/** Of a socket that is closing: a peer that does not answer is gone. */
export function endSoon(socket: WebSocket): void {
  const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
  socket.once('close', () => clearTimeout(timer));
}
