/** Misbehaving endpoints: raw sockets, with or without TLS, and behaviours for them. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { must } from '../../../proto/common/must.ts';

export type Behaviour = (socket: Socket) => void;
export type Hostile = { url: string; connections(): number } & AsyncDisposable;

/** `behave` receives each connection: a TLS connection, or without `tls` the plain socket. */
export async function startHostile(behave: Behaviour, tls?: TlsOptions): Promise<Hostile> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const serve = (socket: Socket) => {
    // It may write after the client has disconnected.
    socket.on('error', () => socket.destroy());
    behave(socket);
  };
  const server: Server = tls ? createTlsServer(tls, serve) : createServer(serve);
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = must(server.address(), 'address');
  if (typeof address === 'string') throw new Error('a TCP server has no port');
  return {
    url: `https://127.0.0.1:${address.port}`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** After a request has arrived, as far as one packet shows. */
export function answering(answer: Behaviour): Behaviour {
  return (socket) => void socket.on('data', () => answer(socket));
}

/** Writes a first part, then another at each step, until the client disconnects. */
export function dripping(first: string, drop: string, everyMs = 20): Behaviour {
  return answering((socket) => {
    socket.write(first);
    const timer = setInterval(() => socket.write(drop), everyMs);
    socket.once('close', () => clearInterval(timer));
  });
}

/** Writes a first part, then another as fast as the client reads. */
export function flooding(first: string, chunk: string | Buffer): Behaviour {
  return answering((socket) => {
    socket.write(first);
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', more);
    more();
  });
}
