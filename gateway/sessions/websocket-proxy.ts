/**
 * WebSocket upgrades: /connect, / and /devtools/... drive a session, /view watches one.
 *   asked -> located (core says where it is; a session without a Chrome is waited for)
 *   -> handed over, when its runner is in this service | dialled -> spliced -> closed
 * The upgrade is replayed at the runner's door, and its answer is the client's: from then on bytes
 * pass unread, or do not pass here at all. What is refused before gets the table's answer, readable
 * on the upgrade. Origin is not looked at: the key in the address is the whole right, and no cookie
 * gives any. A drain refuses what is not spliced yet and closes our half of the others: their
 * runner tells the clients 1001.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import { asFault, Fault } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import {
  LINGER_MS,
  TUNNEL_EARLY_MAX_BYTES,
  TUNNEL_GOODBYE_MS,
  TUNNEL_KEEP_ALIVE_MS,
} from '../config.ts';
import { requestIdOf } from '../http/auth.ts';
import { rawAnswer } from '../http/errors.ts';
import type { HandOver } from '../process/runner-process.ts';
import { credentialOf, presentedBy, targetOf, viewerOf } from './credentials.ts';
import { dial, type Locate, type Place } from './runner-client.ts';
import { splice } from './splice.ts';

export type Tunnels = {
  /** Node's `upgrade`. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void;
  /** Ends all of them; settles when they are gone. */
  close(): Promise<void>;
};

type Options = {
  clients: Pick<Clients, 'sessions'>;
  locate: Locate;
  handOver?: HandOver;
  log: Log;
};

/** Which requests are taken out of HTTP; any other Upgrade is ignored, as RFC 9110 7.8 allows. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

export function openTunnels(options: Options): Tunnels {
  const open = new Set<Promise<void>>();
  const upstreams = new Set<Socket>();
  const draining = new AbortController();

  const serve = async (request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> => {
    const requestId = requestIdOf(request);
    using early = openEarly(socket, head);
    try {
      const signal = AbortSignal.any([draining.signal, early.gone]);
      const { place, replay } = await reach(request, { ...options, requestId, signal });
      const said = () => Buffer.concat([replay, early.take()]);
      if (options.handOver?.(place.address, socket, said)) return;
      const upstream = await dial(place.address, signal);
      const { closed } = keepUntilClosed(upstream, upstreams);
      upstream.write(said());
      await splice(socket, upstream);
      await closed;
    } catch (error) {
      if (early.gone.aborted) socket.destroy();
      else refuse(socket, draining.signal.aborted ? DRAINING : error, { requestId, ...options });
    }
  };
  return {
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy());
      // a session may be silent for long; runner/sessions/relay/idle-timeout.ts ends it
      socket.setTimeout(0);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, TUNNEL_KEEP_ALIVE_MS);
      const served = serve(request, socket, head).finally(() => open.delete(served));
      open.add(served);
    },
    async close() {
      draining.abort(DRAINING);
      for (const upstream of upstreams) upstream.end();
      await Promise.race([Promise.all(open), pause(TUNNEL_GOODBYE_MS)]);
      for (const upstream of upstreams) upstream.destroy();
      await Promise.all(open);
    },
  };
}

const DRAINING = new Fault('DRAINING', 'The service is shutting down.');

function keepUntilClosed(socket: Socket, all: Set<Socket>): { closed: Promise<void> } {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  all.add(socket);
  socket.on('error', () => socket.destroy());
  socket.once('close', () => {
    all.delete(socket);
    resolve();
  });
  return { closed };
}

/** Where the session is that was asked for, and what to say there. */
async function reach(
  request: IncomingMessage,
  options: Options & { requestId: string; signal: AbortSignal },
): Promise<{ place: Place; replay: Buffer }> {
  const { clients, locate, requestId, signal } = options;
  const target = targetOf(request);
  const isView = target.pathname === '/view';
  const driven = drivenBy(target.pathname);
  if (!isView && driven === undefined) {
    throw new Fault('ROUTE_NOT_FOUND', `Route GET ${target.pathname} not found.`);
  }
  checkHandshake(request);
  const presented = isView ? viewerOf(target) : presentedBy(request, target, requestId);
  const place = await locate(await credentialOf(presented, clients, signal), signal);
  const path = isView ? viewPath(target, place) : `${driven}?${keyOf(place)}`;
  return { place, replay: replayOf(request, path) };
}

/**
 * The door's path of a socket that drives: of the browser, or of one target. A key that a client
 * puts behind the path as if it were part of it (chrome-remote-interface's alterPath) is passed by.
 */
function drivenBy(pathname: string): string | undefined {
  if (pathname === '/' || pathname === '/connect') return '/connect';
  const [, kind, id] = /^(?:\/connect)?\/devtools\/(browser|page)\/([\w-]+)/.exec(pathname) ?? [];
  if (id === undefined) return undefined;
  return kind === 'page' ? `/devtools/page/${id}` : '/connect';
}

/** What the runner's WebSocket server would refuse without our body. RFC 6455 4.2.1. */
function checkHandshake({ method, headers }: IncomingMessage): void {
  const key = headers['sec-websocket-key'] ?? '';
  const isWhole = method === 'GET' && /^[+/0-9A-Za-z]{22}==$/.test(key);
  if (!isWhole || headers['sec-websocket-version'] !== '13') {
    throw new Fault('MALFORMED_REQUEST', 'The request is not a WebSocket upgrade of version 13.');
  }
}

/** With the API key that the connection ends with. */
function keyOf({ signingKey, apiKeyId }: Place): string {
  const key = `signingKey=${encodeURIComponent(signingKey)}`;
  return apiKeyId === '' ? key : `${key}&apiKeyId=${encodeURIComponent(apiKeyId)}`;
}

/** As it was asked for, but with the key of the door for the token. */
function viewPath({ searchParams }: URL, place: Place): string {
  const rest = new URLSearchParams(searchParams);
  for (const name of ['token', 'signingKey', 'apiKeyId', 'until']) rest.delete(name);
  if (place.expiresAt) rest.set('until', String(place.expiresAt.getTime()));
  return `/view?${keyOf(place)}&${rest}`;
}

/** Without extensions: compression costs 25 times the CPU and is of no use here. */
function replayOf({ headers }: IncomingMessage, path: string): Buffer {
  const protocol = headers['sec-websocket-protocol'];
  const lines = [
    `GET ${path} HTTP/1.1`,
    'Host: door',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${headers['sec-websocket-key']}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

type Early = Disposable & {
  /** Aborts when the client leaves before its upgrade is answered. */
  gone: AbortSignal;
  /** What it has said so far; from now on it is somebody else's to listen. */
  take(): Buffer;
};

/** Reads a client that waits, which is how its leaving is noticed. */
function openEarly(socket: Socket, head: Buffer): Early {
  const gone = new AbortController();
  const said = [head];
  let size = head.length;
  const read = (bytes: Buffer): void => {
    said.push(bytes);
    size += bytes.length;
    if (size > TUNNEL_EARLY_MAX_BYTES) socket.pause();
  };
  const leave = (): void => gone.abort(new Error('the client has left'));
  socket.on('data', read).once('end', leave).once('close', leave);
  const stop = (): void => {
    socket.off('data', read).off('end', leave).off('close', leave);
  };
  return {
    gone: gone.signal,
    take() {
      stop();
      socket.pause();
      return Buffer.concat(said);
    },
    [Symbol.dispose]: stop,
  };
}

/** The table's answer; then the client has a moment to read it. */
function refuse(
  socket: Socket,
  error: unknown,
  { requestId, log }: { requestId: string; log: Log },
): void {
  const fault = asFault(error);
  if (fault !== error) log.error({ requestId, err: error }, 'bug');
  log.debug({ requestId, reason: fault.reason }, 'upgrade refused');
  socket.end(rawAnswer(fault, requestId));
  socket.resume(); // closing over unread bytes would reset the connection before it is read
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}
