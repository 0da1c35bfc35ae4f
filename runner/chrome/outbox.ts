/**
 * What goes to one client. Messages of one turn of the event loop leave in one system call. A
 * client that falls behind stops the reading of Chrome, and with it the other clients of its
 * session, for so long and no longer.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Log } from '../../proto/log.ts';
import type { Pipe } from './pipe.ts';

/** Above the first, Chrome is no longer read; below the second it is again. */
const BEHIND_BYTES = 16 << 20;
const CAUGHT_UP_BYTES = 4 << 20;
/** A client that stalls stalls the others of its session: so long and no longer. */
const STALL_MS = 30_000;

const TEXT = { binary: false };

export type Outbox = Disposable & {
  send(message: Buffer | string): void;
};

/** `wire` is what the socket writes to. */
export function openOutbox(options: {
  socket: WebSocket;
  wire: Duplex;
  pipe: Pipe;
  log: Log;
}): Outbox {
  const { socket, wire, pipe, log } = options;
  const me = {};
  let stall: NodeJS.Timeout | undefined;
  let isCorked = false;

  const cork = (): void => {
    if (isCorked) return;
    isCorked = true;
    wire.cork();
    process.nextTick(() => {
      isCorked = false;
      wire.uncork();
    });
  };
  const flushed = (): void => {
    if (stall === undefined || socket.bufferedAmount >= CAUGHT_UP_BYTES) return;
    clearTimeout(stall);
    stall = undefined;
    pipe.resume(me);
  };
  return {
    send(message) {
      cork();
      // who keeps up costs no callback
      const isMuch = wire.writableLength + message.length > CAUGHT_UP_BYTES;
      socket.send(message, TEXT, isMuch ? flushed : undefined);
      if (stall !== undefined || socket.bufferedAmount <= BEHIND_BYTES) return;
      pipe.pause(me);
      stall = setTimeout(() => {
        log.warn('a client does not read: dropped');
        socket.terminate();
      }, STALL_MS);
    },
    [Symbol.dispose]() {
      clearTimeout(stall);
      pipe.resume(me);
    },
  };
}
