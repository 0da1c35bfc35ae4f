/**
 * The one door out of a jail: an HTTP proxy for connections that were accepted elsewhere. CONNECT
 * makes a tunnel (https and every WebSocket of Chrome); an absolute-form request is forwarded. Each
 * target is judged (names.ts) and the judged address is dialled. TLS stays end to end. Bytes flow
 * by pipe, so a slow reader slows its writer and nothing piles up.
 */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Log } from '../../proto/log.ts';
import { forwardHeaders } from './headers.ts';
import { openResolve, ownAddresses, type Rules, remembering } from './names.ts';
import type { Route } from './routes.ts';
import {
  type Aim,
  aim,
  dial,
  type IsBlocked,
  type Refusal,
  type Target,
  whereTo,
} from './targets.ts';
import { basicOf } from './upstream.ts';

/**
 * A tunnel or a request without a byte for so long is dropped. Ours: twice a long poll's usual five
 * minutes.
 */
const IDLE_TIMEOUT_MS = 600_000;
const HEADERS_TIMEOUT_MS = 30_000;
/** Ours: longer than Chrome keeps an idle proxy connection busy between two pages. */
const KEEP_ALIVE_MS = 60_000;
const HEADERS_MAX_BYTES = 64 << 10;
/** Ours: as long as browsers keep a name of which they do not know for how long it is good. */
const NAMES_KEPT_MS = 5_000;
/** Ours: Chrome itself keeps 32 per proxy. */
const CONNECTIONS_MAX = 512;

export type Egress = {
  /** Serves one connection from a jail, until it ends. */
  handle(socket: Socket): void;
  /**
   * Since it was opened: `sent` to the network, `received` from it, `managed` of both through the
   * operator's proxies.
   */
  readonly bytes: { sent: number; received: number; managed: number };
  /** From now on: which way connections leave, and which are refused. */
  steer(course: { routes?: readonly Route[]; isBlocked?: IsBlocked }): void;
  /** Drops every connection. */
  close(): void;
};

type Way = Aim & { agent: Agent; bytes: Egress['bytes'] };

/** `allow`: addresses that are not public and may be reached all the same (the operator's list). */
export function openEgress(options: Pick<Rules, 'allow'> & Partial<Rules> & { log: Log }): Egress {
  const { allow, log, own = ownAddresses() } = options;
  const resolve = remembering(options.resolve ?? openResolve(), NAMES_KEPT_MS);
  const agent = new Agent({ keepAlive: true, timeout: IDLE_TIMEOUT_MS });
  const bytes = { sent: 0, received: 0, managed: 0 };
  const way: Way = { allow, resolve, own, log, agent, bytes, routes: [] };
  const sockets = new Set<Duplex>();
  const server = createServer({
    maxHeaderSize: HEADERS_MAX_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: 0, // an upload may take its time; the idle limit holds
  });
  server.on('request', (from, to) => {
    forward(way, from, to).catch((error: unknown) => fail(to, error, log));
  });
  server.on('connect', (from, socket, head) => {
    tunnel(way, { authority: from.url ?? '', socket, head, sockets }).catch((error: unknown) => {
      log.error({ error: String(error) }, 'egress failed');
      socket.destroy();
    });
  });
  return {
    bytes,
    steer: (course) => void Object.assign(way, course),
    handle(socket) {
      if (sockets.size >= CONNECTIONS_MAX) {
        socket.destroy();
        return;
      }
      hold(sockets, socket);
      socket.allowHalfOpen = true; // who has said all still hears the answer
      socket.setTimeout(IDLE_TIMEOUT_MS, () => socket.destroy());
      server.emit('connection', socket);
    },
    close() {
      for (const socket of sockets) socket.destroy();
      agent.destroy();
    },
  };
}

function hold(sockets: Set<Duplex>, socket: Duplex): void {
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket));
  socket.on('error', () => socket.destroy()); // a peer that went away is no news
}

async function tunnel(
  way: Way,
  asked: { authority: string; socket: Duplex; head: Buffer; sockets: Set<Duplex> },
): Promise<void> {
  const { authority, socket, head, sockets } = asked;
  const isAuthority = /^[^/?#@\s]+:\d{1,5}$/.test(authority);
  const target = isAuthority
    ? await aim(way, `http://${authority}`, 'https')
    : { code: 400 as const, why: 'CONNECT takes host:port' };
  if ('code' in target) {
    socket.end(page(target));
    return;
  }
  const far = await dial(target);
  if (far === undefined) {
    socket.end(page({ code: 502, why: `${target.host} does not answer` }));
    return;
  }
  hold(sockets, far);
  far.setTimeout(IDLE_TIMEOUT_MS, () => far.destroy());
  if (socket.destroyed) {
    far.destroy();
    return;
  }
  socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) far.write(head);
  // each half may end by itself, as TCP allows; what the far end has said is still delivered
  socket.pipe(far).pipe(socket);
  far.on('close', () => {
    count(way, target, { sent: far.bytesWritten, received: far.bytesRead });
    (socket as Socket).destroySoon();
  });
  socket.on('close', () => far.destroy());
}

function count(
  { bytes }: Way,
  { via }: Target,
  { sent = 0, received = 0 }: { sent?: number; received?: number },
): void {
  bytes.sent += sent;
  bytes.received += received;
  if (via?.upstream.isManaged) bytes.managed += sent + received;
}

async function forward(way: Way, from: IncomingMessage, to: ServerResponse): Promise<void> {
  const target = await aim(way, from.url ?? '');
  if ('code' in target) refuse(to, target);
  else await pass(way, target, from, to);
}

async function pass(
  way: Way,
  target: Target,
  from: IncomingMessage,
  to: ServerResponse,
): Promise<void> {
  const url = new URL(from.url ?? '');
  const { promise: done, resolve: end } = Promise.withResolvers<void>();
  const { headers, ...where } = routed(way, target, url);
  const far = request({
    ...where,
    headers: [...forwardHeaders(from.rawHeaders), 'connection', 'keep-alive', ...headers],
    method: from.method,
    setHost: false,
    timeout: IDLE_TIMEOUT_MS,
  });
  far.on('timeout', () => far.destroy(new Error('idle')));
  far.on('response', (answer) => {
    to.writeHead(answer.statusCode ?? 502, answer.statusMessage, forwardHeaders(answer.rawHeaders));
    answer.on('data', ({ length }: Buffer) => count(way, target, { received: length }));
    // not stream.pipeline: its AbortController costs a fifth of the CPU of a small request
    answer.pipe(to);
    answer.on('error', () => to.destroy());
    answer.on('close', () => {
      if (!answer.complete) to.destroy();
    });
  });
  far.on('error', () => {
    const isSafe = from.method === 'GET' || from.method === 'HEAD';
    // a kept connection that the site closed at that moment says nothing about the site
    if (far.reusedSocket && isSafe && !to.headersSent) end(pass(way, target, from, to));
    else if (to.headersSent) end(void to.destroy());
    else end(refuse(to, { code: 502, why: `${target.host} does not answer` }));
  });
  to.on('close', () => {
    far.destroy();
    end();
  });
  from.on('data', ({ length }: Buffer) => count(way, target, { sent: length }));
  from.pipe(far);
  await done;
}

/** To the site, to the proxy that fetches from it, or over a tunnel through the proxy. */
function routed({ agent }: Way, target: Target, url: URL) {
  const { via } = target;
  const path = url.pathname + url.search;
  if (via === undefined) return { ...whereTo(target), agent, path, headers: [] };
  if (via.upstream.protocol !== 'http') {
    const createConnection = (
      _options: unknown,
      done: (error: Error | null, socket: Duplex) => void,
    ) => {
      void dial(target).then((socket) => {
        if (socket) done(null, socket);
        else done(new Error('the proxy refused'), undefined as never);
      });
      return undefined;
    };
    return { host: target.host, path, createConnection, headers: [] };
  }
  const basic = basicOf(via.upstream);
  const headers = basic === undefined ? [] : ['proxy-authorization', basic];
  return { ...whereTo(via.at), agent, path: url.href, headers };
}

function fail(to: ServerResponse, error: unknown, log: Log): void {
  log.error({ error: String(error) }, 'egress failed');
  to.destroy();
}

function refuse(to: ServerResponse, { code, why }: Refusal): void {
  to.writeHead(code, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  to.end(`${why}\n`);
}

const TITLES = { 400: 'Bad Request', 403: 'Forbidden', 502: 'Bad Gateway' } as const;

function page({ code, why }: Refusal): string {
  const head = `HTTP/1.1 ${code} ${TITLES[code]}\r\ncontent-type: text/plain; charset=utf-8\r\n`;
  const length = `content-length: ${Buffer.byteLength(why) + 1}\r\n`;
  return `${head}${length}connection: close\r\n\r\n${why}\n`;
}
