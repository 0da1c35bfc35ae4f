/**
 * WebSocket upgrades: /connect, / and /devtools/... drive a session, /view shows one. The upgrade
 * is replayed to the runner's session server; from then on bytes pass unparsed. Refusals before
 * that are JSON errors. gateway/README.md, "WebSocket connections", has the states and the drain.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import { ORIGIN_HEADER } from '../../proto/network/origin-header.ts';
import { asFault, Fault } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import {
  LINGER_MS,
  TUNNEL_EARLY_MAX_BYTES,
  TUNNEL_GOODBYE_MS,
  TUNNEL_KEEP_ALIVE_MS,
} from '../config.ts';
import { requestIdOf } from '../http/auth.ts';
import { baseUrlOf } from '../http/base-url.ts';
import { followFrames, GATEWAY_ENDS, RUNNER_LOST } from '../http/close-frames.ts';
import { rawAnswer } from '../http/errors.ts';
import type { HandOver } from '../process/runner-process.ts';
import { credentialOf, onceIn, presentedBy, targetOf, viewerOf } from './credentials.ts';
import { dial, type Locate, type Place } from './runner-client.ts';
import { splice } from './splice.ts';

export type Tunnels = {
  /** Node's `upgrade`. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void;
  /** Handshakes whose session is being found. */
  handshakes(): number;
  /** Settles when no connection is open. */
  idle(): Promise<void>;
  /** Closes all connections; settles when they are closed. */
  close(): Promise<void>;
};

type Options = {
  clients: Pick<Clients, 'sessions'>;
  locate: Locate;
  publicUrl?: string | undefined;
  handOver?: HandOver | undefined;
  log: Log;
};

/** Requests handled as upgrades; any other Upgrade is ignored, as RFC 9110 7.8 allows. */
export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

export function openTunnels(options: Options): Tunnels {
  const open = new Set<Promise<void>>();
  const upstreams = new Set<Socket>();
  const draining = new AbortController();
  let handshakes = 0;

  const found = async (
    request: IncomingMessage,
    how: { requestId: string; signal: AbortSignal },
  ) => {
    handshakes += 1;
    try {
      return await reach(request, { ...options, ...how });
    } finally {
      handshakes -= 1;
    }
  };
  const serve = async (request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> => {
    const requestId = requestIdOf(request);
    using early = openEarly(socket, head);
    try {
      const signal = AbortSignal.any([draining.signal, early.gone]);
      const { place, replay } = await found(request, { requestId, signal });
      const readAhead = () => Buffer.concat([replay, early.take()]);
      if (options.handOver?.(place.address, socket, readAhead)) return;
      const upstream = await dial(place, signal);
      const { closed } = keepUntilClosed(upstream, upstreams);
      upstream.write(readAhead());
      await splice(socket, upstream, lastWords(draining.signal));
      await closed;
    } catch (error) {
      if (early.gone.aborted) socket.destroy();
      else refuse(socket, draining.signal.aborted ? DRAINING : error, { requestId, ...options });
    }
  };
  return {
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy());
      // sessions may be idle for long; runner/sessions/relay/idle-timeout.ts closes them
      socket.setTimeout(0);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, TUNNEL_KEEP_ALIVE_MS);
      const served = serve(request, socket, head).finally(() => open.delete(served));
      open.add(served);
    },
    handshakes: () => handshakes,
    async idle() {
      while (open.size > 0) await Promise.all(open);
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

/** A client whose runner ends without a close frame hears why. */
function lastWords(draining: AbortSignal) {
  const frames = followFrames();
  const why = () => (draining.aborted ? GATEWAY_ENDS : RUNNER_LOST);
  return { read: frames.read, last: () => (frames.takesClose ? why() : Buffer.alloc(0)) };
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

/** Location of the requested session, and its path on the session server. */
async function reach(
  request: IncomingMessage,
  options: Options & { requestId: string; signal: AbortSignal },
): Promise<{ place: Place; replay: Buffer }> {
  const { clients, locate, publicUrl, requestId, signal } = options;
  const target = targetOf(request);
  const isView = target.pathname === '/view';
  const driven = drivenBy(target.pathname);
  if (!isView && driven === undefined) {
    throw new Fault('ROUTE_NOT_FOUND', `Route GET ${target.pathname} not found.`);
  }
  checkHandshake(request);
  const resumption = isView ? '' : resumptionOf(target);
  const presented = isView ? viewerOf(target) : presentedBy(request, target, requestId);
  const place = await locate(await credentialOf(presented, clients, signal), signal);
  const path = isView ? viewPath(target, place) : `${driven}?${keyOf(place)}${resumption}`;
  const origin = publicUrl ?? baseUrlOf({ req: request });
  return { place, replay: replayOf(request, path, origin) };
}

/**
 * Path on the session server of a socket to the browser or to one target. A key that a client
 * appends to the path (chrome-remote-interface's alterPath) is removed.
 */
function drivenBy(pathname: string): string | undefined {
  if (pathname === '/' || pathname === '/connect') return '/connect';
  const [, kind, id] = /^(?:\/connect)?\/devtools\/(browser|page)\/([\w-]+)/.exec(pathname) ?? [];
  if (id === undefined) return undefined;
  return kind === 'page' ? `/devtools/page/${id}` : '/connect';
}

/**
 * Requests that the runner's WebSocket server would refuse without a JSON error. RFC 6455 4.2.1.
 */
function checkHandshake({ method, headers }: IncomingMessage): void {
  const key = headers['sec-websocket-key'] ?? '';
  const isWhole = method === 'GET' && /^[+/0-9A-Za-z]{22}==$/.test(key);
  if (!isWhole || headers['sec-websocket-version'] !== '13') {
    throw new Fault('MALFORMED_REQUEST', 'The request is not a WebSocket upgrade of version 13.');
  }
}

/** With the id of the API key that the connection depends on. */
function keyOf({ signingKey, apiKeyId }: Place): string {
  const key = `signingKey=${encodeURIComponent(signingKey)}`;
  return apiKeyId === '' ? key : `${key}&apiKeyId=${encodeURIComponent(apiKeyId)}`;
}

/** The parameters of a connection that may be resumed, which the session's relay reads. */
function resumptionOf({ searchParams }: URL): string {
  const given = ['resume', 'received'].map((name) => [name, onceIn(searchParams, name)] as const);
  return given
    .flatMap(([name, value]) =>
      value === undefined ? [] : [`&${name}=${encodeURIComponent(value)}`],
    )
    .join('');
}

/** Replays the request with the token of the session server instead of the credential. */
function viewPath({ searchParams }: URL, place: Place): string {
  const rest = new URLSearchParams(searchParams);
  for (const name of ['token', 'signingKey', 'apiKeyId', 'until', 'handoff']) rest.delete(name);
  if (place.expiresAt) rest.set('until', String(place.expiresAt.getTime()));
  if (place.handoffId !== '') rest.set('handoff', place.handoffId);
  if (place.isReadOnly) rest.set('readonly', 'true'); // whatever the client wants
  return `/view?${keyOf(place)}&${rest}`;
}

/** Without extensions: compression costs 25 times the CPU and has no benefit here. */
function replayOf({ headers }: IncomingMessage, path: string, origin: string): Buffer {
  const protocol = headers['sec-websocket-protocol'];
  const lines = [
    `GET ${path} HTTP/1.1`,
    'Host: runner',
    `${ORIGIN_HEADER}: ${origin}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${headers['sec-websocket-key']}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

type Early = Disposable & {
  /** Aborts when the client disconnects before its upgrade is answered. */
  gone: AbortSignal;
  /** The bytes received so far; afterwards another reader takes over. */
  take(): Buffer;
};

/** Reads from a waiting client, which detects that it disconnects. */
function openEarly(socket: Socket, head: Buffer): Early {
  const gone = new AbortController();
  const chunks = [head];
  let size = head.length;
  const read = (bytes: Buffer): void => {
    chunks.push(bytes);
    size += bytes.length;
    if (size > TUNNEL_EARLY_MAX_BYTES) socket.pause();
  };
  const leave = (): void => gone.abort(new Error('the client has disconnected'));
  socket.on('data', read).once('end', leave).once('close', leave);
  const stop = (): void => {
    socket.off('data', read).off('end', leave).off('close', leave);
  };
  return {
    gone: gone.signal,
    take() {
      stop();
      socket.pause();
      return Buffer.concat(chunks);
    },
    [Symbol.dispose]: stop,
  };
}

/** Sends the JSON error, then gives the client a moment to read it. */
function refuse(
  socket: Socket,
  error: unknown,
  { requestId, log }: { requestId: string; log: Log },
): void {
  const fault = asFault(error);
  if (fault !== error) log.error({ requestId, err: error }, 'bug');
  log.debug({ requestId, reason: fault.reason }, 'upgrade refused');
  socket.end(rawAnswer(fault, requestId));
  // closing a socket with unread bytes would reset the connection before the client reads
  socket.resume();
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}
