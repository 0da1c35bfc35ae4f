/**
 * The connection of one client to the relay. This one is a WebSocket, and ends with it; the one in
 * resumable-connection.ts outlives its WebSockets.
 */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Log } from '../../../proto/common/log.ts';
import { openPauses, type Pauses } from '../../browser/cdp/pauses.ts';
import type { Pipe } from '../../browser/cdp/pipe.ts';
import { endSoon, openOutbox } from './outbox.ts';

/** Stands for no close frame at all. RFC 6455 7.4.1. */
const NO_CLOSE_FRAME = 1006;

/** Of a socket whose gateway shuts down: the client receives the reason before ws closes ours. */
type GoingAway = { code: number; reason: string };
const GATEWAY_ENDS: GoingAway = { code: 1001, reason: 'the gateway is ending' };

/** `hasFailed`: the client broke the WebSocket protocol, or sent a message that is too long. */
export type Closed = { isBroken: boolean; hasFailed: boolean };

export type Connection = {
  /** Of the client's messages. */
  reading: Pauses;
  /** The buffer must not change afterwards. */
  send(message: Buffer): void;
  /** Called with each message of the client. */
  onMessage(listener: (text: Buffer, isBinary: boolean) => void): void;
  /** Whether the message is for the connection itself, which has then handled it. */
  takes?(text: Buffer): boolean;
  ping(): void;
  close(code: number, reason: string): void;
  /** Whether neither side has closed it. */
  readonly isOpen: boolean;
  /** Whether a WebSocket carries it at the moment. */
  readonly isConnected: boolean;
  /** Settles when it is closed. `isBroken`: without a close frame. Never rejects. */
  closed: Promise<Closed>;
};

export type ConnectionOptions = {
  socket: WebSocket;
  /** The stream below the WebSocket. */
  wire: Duplex;
  pipe: Pick<Pipe, 'pause' | 'resume'>;
  log: Log;
  goingAway?: GoingAway;
};

export function openConnection(options: ConnectionOptions): Connection {
  const { socket, wire, pipe, log, goingAway = GATEWAY_ENDS } = options;
  const reading = openPauses(socket);
  const outbox = openOutbox({ socket, wire, pipe, reading, log });
  const { promise: closed, resolve } = Promise.withResolvers<Closed>();
  let hasFailed = false;
  // a message that is too long or a broken frame: ws sends a close code, which the client may
  // receive
  socket.on('error', () => {
    hasFailed = true;
    endSoon(socket);
  });
  socket.on('close', (code) => {
    outbox[Symbol.dispose]();
    resolve({ isBroken: code === NO_CLOSE_FRAME, hasFailed });
  });
  // a gateway that shuts down closes its half: the client gets the reason before ws closes ours
  wire.prependOnceListener('end', () => socket.close(goingAway.code, goingAway.reason));
  return {
    reading,
    send: outbox.send,
    closed,
    onMessage: (listener) => void socket.on('message', listener),
    ping: () => socket.ping(),
    close(code, reason) {
      outbox.flush();
      socket.close(code, reason);
      endSoon(socket);
    },
    get isOpen() {
      return socket.readyState === socket.OPEN;
    },
    get isConnected() {
      return socket.readyState !== socket.CLOSED;
    },
  };
}
