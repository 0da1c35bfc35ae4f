/**
 * The way from a function host to its browsers: an HTTP server on a unix socket that only this host
 * can reach. An upgrade with the signing key of a session that this host has now goes to that
 * session's relay; everything else is refused. GET /json/version answers as Chrome does, for
 * drivers that are given an http address.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

const UNAUTHORIZED = 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';

/** As much of a relay as the broker uses. */
export type Serves = {
  serve(request: IncomingMessage, socket: Duplex, head: Buffer): void;
};

export type Broker = AsyncDisposable & {
  /** Lets clients in to this relay by this key until it is disposed. */
  admit(signingKey: string, relay: Serves): Disposable;
};

export async function openBroker(socketPath: string): Promise<Broker> {
  const relays = new Map<string, Serves>();
  const relayOf = (url: URL): Serves | undefined =>
    relays.get(url.searchParams.get('signingKey') ?? '');
  const server = createServer((request, response) => answer(request, response, relayOf));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const url = addressOf(request);
    const relay = url && relayOf(url);
    if (relay) relay.serve(request, socket, head);
    else socket.end(UNAUTHORIZED);
  });
  server.listen(socketPath);
  await once(server, 'listening');
  return {
    admit(signingKey, relay) {
      relays.set(signingKey, relay);
      return { [Symbol.dispose]: () => void relays.delete(signingKey) };
    },
    async [Symbol.asyncDispose]() {
      relays.clear();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  relayOf: (url: URL) => Serves | undefined,
): void {
  const url = addressOf(request);
  if (request.method !== 'GET' || !url || !/^\/json\/version\/?$/.test(url.pathname)) {
    response.writeHead(404).end();
  } else if (relayOf(url) === undefined) {
    response.writeHead(401).end();
  } else {
    const signingKey = url.searchParams.get('signingKey');
    const webSocketDebuggerUrl = `ws://${url.host}/?signingKey=${signingKey}`;
    const body = { Browser: 'Chrome', 'Protocol-Version': '1.3', webSocketDebuggerUrl };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  }
}

/**
 * The request's address; undefined when it cannot be read. The host header is the client's own word
 * for this host.
 */
function addressOf(request: IncomingMessage): URL | undefined {
  const base = `ws://${request.headers.host ?? '127.0.0.1'}`;
  return URL.parse(request.url ?? '/', base) ?? undefined;
}
