/**
 * The egress proxy, the only way out of a jail: HTTP and SOCKS for connections that were accepted
 * elsewhere. CONNECT opens a tunnel (https and every WebSocket of Chrome), and so does SOCKS (plain
 * http of Chrome); an absolute-form request is forwarded (http-forward.ts). Each target is checked
 * (resolver.ts) and the checked address is dialled. TLS stays end to end. Streams have
 * back-pressure, so nothing is buffered without a limit.
 */
import type { Socket } from 'node:net';
import type { Log } from '../../../proto/common/log.ts';
import { dial, type EgressRules, type Refusal, resolveTarget, type Target } from './dial.ts';
import { HttpConnection } from './http-connection.ts';
import { type Client, forward, refuse, type UpstreamConnection } from './http-forward.ts';
import { type RequestHead, requestHead } from './http1.ts';
import type { GivenErrors, NetError } from './net-errors.ts';
import { lookUp, openResolve, ownAddresses, remembering } from './resolver.ts';
import { PatternTimeout, type Route } from './routes.ts';
import { grant, readDestination, SOCKS_VERSION } from './socks.ts';
import { challenge, forwardCredentials, usesClientCredentials } from './upstream-proxy.ts';

/** An idle tunnel or request is closed then. Ours: twice a long poll's usual five minutes. */
const IDLE_TIMEOUT_MS = 600_000;
/** Ours: longer than Chrome keeps an idle proxy connection between two pages. */
const KEEP_ALIVE_MS = 60_000;
/** Ours: as long as browsers cache a name without a known TTL. */
const NAMES_KEPT_MS = 5_000;
/** Ours: Chrome itself opens at most 32 per proxy. */
const CONNECTIONS_MAX = 512;
/** Ours: each is logged once, so a page that tries many does not fill the log. */
const DENIED_HOSTS_MAX = 100;
const SLOW_PATTERN = 'a domainPattern of a session took too much CPU time';
/** Loopback addresses except the session's own. */
const UNASSIGNED = /^127\.(?!0\.0\.1$)/;

export type Egress = GivenErrors & {
  /** Serves one connection from a jail, until it closes. */
  handle(socket: Socket): void;
  /** In bytes, to and from the network; `managed`: both, through the operator's proxies. */
  readonly bytes: { sent: number; received: number; managed: number };
  /** Changes routes and filters. Open connections are closed: they would keep the old ones. */
  steer(course: { routes?: readonly Route[] } & Pick<EgressRules, 'isBlocked' | 'isAllowed'>): void;
  /** Adds a listener for refusals. */
  onRefusal(listener: (refusal: Refusal) => void): void;
  /**
   * From now on connections to this loopback address try this route before the session's, and their
   * client provides the proxy's credentials; undefined: they are refused.
   */
  divert(address: string, route: Route | undefined): void;
  /** Closes every connection. */
  close(): void;
};

type EgressContext = EgressRules & { bytes: Egress['bytes']; sockets: Set<Socket> };

type EgressOptions = { log: Log } & Pick<EgressRules, 'allow'> &
  Partial<Pick<EgressRules, 'allowSetting' | 'named' | 'onRefusal' | 'isBrowser' | 'resolve'>>;

/** `allow`: addresses that are not public and still open (the operator's list). */
export function openEgress(options: EgressOptions): Egress {
  const { log } = options;
  const bytes = { sent: 0, received: 0, managed: 0 };
  const sockets = new Set<Socket>();
  const errors = new Set<NetError>();
  const deniedHosts = new Map<string, string>();
  const listeners = options.onRefusal ? [options.onRefusal] : [];
  const onRefusal = (refusal: Refusal): void => {
    const { error, denied } = refusal;
    if (error !== undefined) errors.add(error);
    const isNew = denied !== undefined && !deniedHosts.has(denied.host);
    if (isNew && deniedHosts.size < DENIED_HOSTS_MAX) {
      deniedHosts.set(denied.host, denied.why);
      log.info({ target: denied.host }, 'egress denied');
    }
    for (const listener of listeners) listener(refusal);
  };
  const context: EgressContext = {
    ...options,
    own: ownAddresses(),
    resolve: remembering(options.resolve ?? openResolve(), NAMES_KEPT_MS),
    lookUp: remembering(lookUp, NAMES_KEPT_MS),
    routes: [],
    bytes,
    sockets,
    onRefusal,
  };
  const diverted = new Map<string, Route>();
  const closeAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  /** The context of a connection; undefined for an unassigned address. */
  const contextOf = ({ localAddress = '' }: Socket): EgressContext | undefined => {
    const route = diverted.get(localAddress);
    if (route === undefined) return UNASSIGNED.test(localAddress) ? undefined : context;
    return { ...context, routes: [route, ...context.routes], hasCredentials: true };
  };
  return {
    bytes,
    errors,
    deniedHosts,
    onRefusal: (listener) => void listeners.push(listener),
    divert(address, route) {
      if (route === undefined) diverted.delete(address);
      else diverted.set(address, route);
    },
    steer(course) {
      Object.assign(context, course);
      closeAll();
    },
    handle(socket) {
      const own = contextOf(socket);
      if (own === undefined || sockets.size >= CONNECTIONS_MAX) {
        socket.destroy();
        return;
      }
      track(sockets, socket);
      socket.allowHalfOpen = true; // a half-closed client of a tunnel still receives the response
      socket.setNoDelay(true);
      serve(own, socket).catch((error: unknown) => {
        if (error instanceof PatternTimeout) log.warn({}, SLOW_PATTERN);
        else log.error({ error: String(error) }, 'egress failed');
        socket.destroy();
      });
    },
    close: closeAll,
  };
}

function track(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket));
  // errors and idle timeouts mean that the peer is gone, and are not logged
  socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
}

/** Serves one connection until it closes or becomes a tunnel. */
async function serve(rules: EgressContext, socket: Socket): Promise<void> {
  const client: Client = { connection: new HttpConnection(socket), upstream: undefined };
  const destroyUpstream = (): void => void client.upstream?.connection.socket.destroy();
  socket.on('end', destroyUpstream).on('close', destroyUpstream);
  socket.setTimeout(KEEP_ALIVE_MS);
  const isSocks = (await client.connection.peek()) === SOCKS_VERSION;
  const isTunnel = isSocks ? await serveSocks(rules, client) : await serveRequests(rules, client);
  if (isTunnel) return;
  destroyUpstream();
  client.connection.release();
  // unread input would reset the connection before the response is read
  socket.resume().end();
}

/**
 * Serves the requests of one connection. `site`: all requests are for it and contain only a path.
 * True when the connection has become a tunnel.
 */
async function serveRequests(rules: EgressContext, client: Client, site = ''): Promise<boolean> {
  const { connection } = client;
  const hidesProxies = site !== '';
  const options = { rules, adoptUpstream: adopt.bind(undefined, rules), hidesProxies };
  for (let goesOn = true; goesOn; ) {
    connection.socket.setTimeout(KEEP_ALIVE_MS);
    const text = await connection.head();
    if (text === undefined) break;
    connection.socket.setTimeout(IDLE_TIMEOUT_MS);
    const request = requestHead(text);
    if (request?.method === 'CONNECT' && site === '') {
      client.upstream?.connection.socket.destroy();
      return await tunnel(rules, request, connection);
    }
    const isRequest = request !== undefined && (site === '' || request.target.startsWith('/'));
    goesOn = isRequest
      ? await forward({ ...request, target: site + request.target }, client, options)
      : refuse(rules, connection.socket, { code: 400, why: 'this is no request of HTTP/1.1' });
  }
  return false;
}

/** A browser's plain http: a tunnel, unless requests must be read or the target has failed. */
async function serveSocks(rules: EgressContext, client: Client): Promise<boolean> {
  const { connection } = client;
  const authority = await readDestination(connection);
  if (authority === undefined) return false;
  const site = `http://${authority}`;
  const target = await resolveTarget(rules, site);
  if ('code' in target) return await refuseNext(rules, connection, target);
  if (rules.isBlocked || target.via?.upstream.protocol === 'http') {
    grant(connection);
    return await serveRequests(rules, client, site);
  }
  const upstream = await dial(target);
  if ('why' in upstream) return await refuseNext(rules, connection, upstream);
  grant(connection);
  return connectBoth(rules, { connection, upstream, target });
}

async function refuseNext(
  rules: EgressContext,
  connection: HttpConnection,
  refusal: Refusal,
): Promise<false> {
  grant(connection);
  if ((await connection.head()) !== undefined) refuse(rules, connection.socket, refusal);
  return false;
}

/** Registers a connection to a site for plain requests. */
function adopt(rules: EgressContext, socket: Socket, target: Target): UpstreamConnection {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const count = meter(rules, socket, target);
  track(rules.sockets, socket);
  socket.setTimeout(IDLE_TIMEOUT_MS);
  const connection = new HttpConnection(socket);
  socket.on('end', () => socket.destroy()); // a site that half-closes gets no more requests
  socket.on('close', () => {
    count();
    resolve();
  });
  return { connection, target, count, closed, isUsed: false };
}

async function tunnel(
  rules: EgressContext,
  request: RequestHead,
  connection: HttpConnection,
): Promise<boolean> {
  const { target: authority } = request;
  const isAuthority = /^[^/?#@\s]+:\d{1,5}$/.test(authority);
  const target = isAuthority
    ? await resolveTarget(rules, `http://${authority}`, 'https')
    : { code: 400 as const, why: 'CONNECT takes host:port' };
  if ('code' in target) return refuse(rules, connection.socket, target, true);
  forwardCredentials(rules, target, request);
  const upstream = await dial(target);
  if (target.via?.isLocked && usesClientCredentials(rules, target))
    return challenge(connection.socket);
  if ('why' in upstream) return refuse(rules, connection.socket, upstream, true);
  connection.socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
  return connectBoth(rules, { connection, upstream, target });
}

type Ends = { connection: HttpConnection; upstream: Socket; target: Target };

/** Connects both directions. */
function connectBoth(rules: EgressContext, { connection, upstream, target }: Ends): true {
  const { socket } = connection;
  track(rules.sockets, upstream);
  upstream.setTimeout(IDLE_TIMEOUT_MS);
  socket.setTimeout(IDLE_TIMEOUT_MS);
  if (socket.destroyed) {
    upstream.destroy();
    return true;
  }
  const buffered = connection.release();
  if (buffered.length > 0) upstream.write(buffered);
  // each direction may end separately, as in TCP; buffered data is still delivered
  socket.pipe(upstream).pipe(socket);
  upstream.on('close', meter(rules, upstream, target)).on('close', () => socket.destroySoon());
  socket.on('close', () => upstream.destroy());
  return true;
}

/** Returns a function that counts the bytes since its last call. */
function meter({ bytes }: EgressContext, socket: Socket, { via }: Target): () => void {
  let [wasSent, wasReceived] = [0, 0];
  return () => {
    const [sent, received] = [socket.bytesWritten - wasSent, socket.bytesRead - wasReceived];
    [wasSent, wasReceived] = [socket.bytesWritten, socket.bytesRead];
    bytes.sent += sent;
    bytes.received += received;
    if (via?.upstream.isManaged) bytes.managed += sent + received;
  };
}
