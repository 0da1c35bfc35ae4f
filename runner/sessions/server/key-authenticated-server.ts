/**
 * An HTTP server that routes each request to the session of its signing key while that session is
 * registered. Serves upgrades, and GET /json/version as Chrome does, for drivers that are given an
 * http address. All other requests are refused.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { FILE_TRANSFER_TIMEOUT_MS } from '../../../proto/common/limits.ts';
import type { Log } from '../../../proto/common/log.ts';
import { listenTls, type TlsListener } from '../../../proto/tls/listener.ts';
import type { SessionListen } from '../../config.ts';
import { answerRefusal, refuse } from '../refusal.ts';

/**
 * In milliseconds: for the headers of a request, and between two checks of it. Ours: gateways send
 * them at once, and others shall not hold connections.
 */
const TIMES = { headersMs: 10_000, checkMs: 5_000 };
const NO_ROUTE = 'There is no such route.';

/** The part of a relay that is used here. */
export type UpgradeHandler = {
  serve(request: IncomingMessage, socket: Duplex, head: Buffer, targetId?: string): void;
};

/** `log`: of refused handshakes. */
type NetworkPlace = SessionListen & { log: Log };

export type Upgrade = { request: IncomingMessage; socket: Socket; head: Buffer; url: URL };
export type Exchange = { request: IncomingMessage; response: ServerResponse; url: URL };

export type Routes<T> = {
  /** Serves an upgrade with a valid key. */
  upgrade(registered: T, upgrade: Upgrade): void;
  /** Answers a request with a valid key; false when there is no such route. */
  answer(registered: T, exchange: Exchange): boolean;
  /** The browser's fields of GET /json/version, without its address. */
  version?(registered: T): Promise<Record<string, string>>;
  /** The response to a missing or unknown key. */
  unauthorized: { statusCode: number; message: string };
};

export type KeyAuthenticatedServer<T> = AsyncDisposable & {
  /** Routes requests with this key to the session until it is disposed. */
  register(signingKey: string, registered: T): Disposable;
  /** Connections with this key wait until the session is registered, or until this is disposed. */
  reserve(signingKey: string): Disposable;
  /** Serves a connection that was accepted elsewhere. */
  serve(socket: Socket): void;
};

/**
 * `where`: path of a socket file, accessible to its owner only, or an address. `times` are shorter
 * in tests.
 */
export async function openKeyAuthenticatedServer<T>(
  where: string | NetworkPlace,
  routes: Routes<T>,
  times = TIMES,
): Promise<KeyAuthenticatedServer<T>> {
  const all = new Map<string, T>();
  const upgraded = new Set<Socket>();
  const reserved = new Map<string, PromiseWithResolvers<void>>();
  const find = async (url: URL | undefined): Promise<T | undefined> => {
    const key = url?.searchParams.get('signingKey') ?? '';
    await reserved.get(key)?.promise;
    return all.get(key);
  };
  const server = createServer({
    requestTimeout: FILE_TRANSFER_TIMEOUT_MS,
    headersTimeout: times.headersMs,
    connectionsCheckingInterval: times.checkMs,
  });
  server.on('request', async (request, response) => {
    const url = addressOf(request);
    const registered = await find(url);
    const { statusCode, message } = routes.unauthorized;
    if (!url || !registered) answerRefusal(response, statusCode, message);
    else if (isVersion(request, url))
      await answerVersion(response, url, routes.version?.(registered));
    else if (!routes.answer(registered, { request, response, url })) {
      answerRefusal(response, 404, NO_ROUTE);
    }
  });
  server.on('upgrade', async (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    socket.setNoDelay(true);
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    const url = addressOf(request);
    const registered = await find(url);
    if (url && registered) routes.upgrade(registered, { request, socket, head, url });
    else refuse(socket, routes.unauthorized.statusCode, routes.unauthorized.message);
  });
  const listener = await listen(server, where);
  return {
    register(signingKey, registered) {
      all.set(signingKey, registered);
      reserved.get(signingKey)?.resolve();
      return { [Symbol.dispose]: () => void all.delete(signingKey) };
    },
    reserve(signingKey) {
      const coming = Promise.withResolvers<void>();
      reserved.set(signingKey, coming);
      return {
        [Symbol.dispose]() {
          if (reserved.get(signingKey) === coming) reserved.delete(signingKey);
          coming.resolve();
        },
      };
    },
    serve: (socket) => void server.emit('connection', socket),
    async [Symbol.asyncDispose]() {
      all.clear();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroySoon(); // pending writes are sent first
      await closed;
      await listener?.[Symbol.asyncDispose]();
    },
  };
}

function placeOf({ host, port }: NetworkPlace) {
  return { host, port };
}

/** Behind a TLS listener, if there is one; connections that are handed off are plain. */
async function listen(
  server: Server,
  where: string | NetworkPlace,
): Promise<TlsListener | undefined> {
  if (typeof where === 'string' || where.tls === undefined) {
    server.listen(typeof where === 'string' ? { path: where } : placeOf(where));
    await once(server, 'listening');
    return undefined;
  }
  const { tls: files, log, ...place } = where;
  const options = { where: place, files, protocol: 'http/1.1', log } as const;
  const listener = await listenTls(options, (socket) => server.emit('connection', socket));
  // Only at this event node begins to time requests and to know connections, which it closes later.
  server.emit('listening');
  return listener;
}

function isVersion({ method }: IncomingMessage, { pathname }: URL): boolean {
  return method === 'GET' && /^\/json\/version\/?$/.test(pathname);
}

const DEFAULT_VERSION = { Browser: 'Chrome', 'Protocol-Version': '1.3' };

async function answerVersion(
  response: ServerResponse,
  url: URL,
  asked: Promise<Record<string, string>> | undefined,
): Promise<void> {
  const signingKey = url.searchParams.get('signingKey');
  const webSocketDebuggerUrl = `ws://${url.host}/?signingKey=${signingKey}`;
  // Rejects when the browser is about to end; its address is valid all the same.
  const version = await asked?.catch(() => undefined);
  const body = { ...(version ?? DEFAULT_VERSION), webSocketDebuggerUrl };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** The request's URL; undefined when it is invalid. The host is the one the client sent. */
function addressOf(request: IncomingMessage): URL | undefined {
  const base = `ws://${request.headers.host ?? '127.0.0.1'}`;
  return URL.parse(request.url ?? '/', base) ?? undefined;
}
