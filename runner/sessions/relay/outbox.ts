/**
 * Sends messages to one client. Messages of one turn of the event loop leave in one system call. A
 * client that falls behind pauses reading from Chrome, which stalls the other clients of its
 * session, up to STALL_MS. Its own commands pause too, because the relay responds to many of them
 * itself.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Log } from '../../../proto/common/log.ts';
import type { Pauses } from '../../browser/cdp/pauses.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import { framed, frameHead } from './ws-frames.ts';

/** Above the first, reading from Chrome is paused; below the second, it resumes. */
const BEHIND_BYTES = 16 << 20;
const CAUGHT_UP_BYTES = 4 << 20;
/** How long a slow client may stall the other clients of its session. */
const STALL_MS = 30_000;
/** Longer messages are not copied: the copy would cost more than a separate write. */
const COPIED_MAX_BYTES = 16 << 10;
/** For the peer's close frame. */
const CLOSE_TIMEOUT_MS = 2_000;

export type Outbox = Disposable & {
  /** The buffer must not change afterwards. */
  send(message: Buffer): void;
  /** Sends the queued messages at once: used before the socket is closed in the same turn. */
  flush(): void;
};

/** `wire` is the stream below the WebSocket. */
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
    // a client that keeps up needs no callback
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
    // no frame may follow a close frame
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

/** Terminates a closing socket whose peer does not respond. */
export function endSoon(socket: WebSocket): void {
  const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
  socket.once('close', () => clearTimeout(timer));
}
