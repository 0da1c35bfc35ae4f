/**
 * Plain requests of one connection from a jail, one after another. Each is checked and sent to its
 * site over a connection of this client alone, which is kept for its next request to the same
 * destination: messages of a client or a site reach nobody else. Heads are written anew (http1.ts),
 * bodies are forwarded unread.
 */
import type { Socket } from 'node:net';
import {
  connectFor,
  type EgressRules,
  isSameDestination,
  proxyFailed,
  type Refusal,
  resolveTarget,
  type Target,
} from './dial.ts';
import type { HttpConnection } from './http-connection.ts';
import { answerHead, NO_BODY, type RequestHead } from './http1.ts';
import { encodeNetError } from './net-errors.ts';
import {
  basicOf,
  challenge,
  forwardCredentials,
  LOCKED,
  usesClientCredentials,
} from './upstream-proxy.ts';

/** A client's connection to a site, or to the proxy in front of it. */
export type UpstreamConnection = {
  connection: HttpConnection;
  target: Target;
  /** A request was sent on it before. */
  isUsed: boolean;
  /** Settles when it is closed. */
  closed: Promise<unknown>;
  /** Counts the bytes since the last call. */
  count(): void;
};

export type Client = { connection: HttpConnection; upstream: UpstreamConnection | undefined };

type ForwardOptions = {
  rules: EgressRules;
  /** Registers a new connection with the egress. */
  adoptUpstream(socket: Socket, target: Target): UpstreamConnection;
  /** The client believes that it talks to the site: responses of a proxy must not reach it. */
  hidesProxies: boolean;
};

type Outcome = 'goes on' | 'last' | 'broken' | 'unclear' | 'silent' | 'locked';

/** Serves one request. False when the client's connection is finished. */
export async function forward(
  request: RequestHead,
  client: Client,
  options: ForwardOptions,
): Promise<boolean> {
  const { rules, hidesProxies } = options;
  const { socket } = client.connection;
  const target = await resolveTarget(rules, request.target);
  if ('code' in target) return refuse(rules, socket, target);
  forwardCredentials(rules, target, request);
  const head = headFor(request, target);
  const usesClient = usesClientCredentials(rules, target);
  const mayLock = (hidesProxies || usesClient) && target.via?.upstream.protocol === 'http';
  let outcome: Outcome = 'silent';
  while (outcome === 'silent') {
    const upstream = await upstreamConnection(target, client, options);
    if (client.connection.isOver) return false;
    if ('why' in upstream) {
      return target.via?.isLocked && usesClient
        ? challenge(socket)
        : refuse(rules, socket, upstream);
    }
    const wasUsed = upstream.isUsed;
    upstream.isUsed = true;
    outcome = await exchange(request, head, { client, upstream, mayLock });
    upstream.count();
    if (outcome !== 'silent') break;
    upstream.connection.socket.destroy();
    if (!wasUsed) break;
    // a kept connection that the site closed just then proves nothing about the site: the request
    // is retried here, or by the client, whose connection closes in the same way
    if (!isSafe(request)) outcome = 'broken';
  }
  if (outcome === 'locked') {
    const why = `the proxy ${target.via?.upstream.host} refuses its credentials`;
    return usesClient ? challenge(socket) : refuse(rules, socket, proxyFailed(why));
  }
  if (outcome === 'silent' || outcome === 'unclear') {
    const problem = outcome === 'silent' ? 'does not answer' : 'sent no valid HTTP/1.1 response';
    return refuse(rules, socket, { code: 502, why: `${target.host} ${problem}` });
  }
  if (outcome === 'broken') socket.destroy();
  if (outcome === 'goes on' && !request.isLast) return true;
  socket.end();
  return false;
}

/** May be sent twice. */
function isSafe({ method, body }: RequestHead): boolean {
  return (method === 'GET' || method === 'HEAD') && body === NO_BODY;
}

/** The existing connection, when its destination is the same, or a new one. */
async function upstreamConnection(
  target: Target,
  client: Client,
  { adoptUpstream }: ForwardOptions,
): Promise<UpstreamConnection | Refusal> {
  const { upstream } = client;
  const isOpen = upstream !== undefined && !upstream.connection.socket.destroyed;
  // unrequested bytes of a site, or bytes before it has read a request, are no response to the next
  const isFit =
    isOpen && !upstream.connection.hasMore && upstream.connection.socket.writableLength === 0;
  if (isFit && isSameDestination(upstream.target, target)) return upstream;
  upstream?.connection.socket.destroy();
  client.upstream = undefined;
  const socket = await connectFor(target);
  if ('why' in socket) return socket;
  client.upstream = adoptUpstream(socket, target);
  if (client.connection.isOver) socket.destroy(); // the client has disconnected meanwhile
  return client.upstream;
}

async function exchange(
  request: RequestHead,
  head: string,
  { client, upstream, mayLock }: { client: Client; upstream: UpstreamConnection; mayLock: boolean },
): Promise<Outcome> {
  const { socket } = upstream.connection;
  const { body, method } = request;
  const sent = client.connection.pass(head, body, socket);
  if (body !== NO_BODY) void sent.then((isWhole) => isWhole || socket.destroy());
  const outcome = await answer(upstream.connection, client.connection, { method, mayLock });
  if (outcome !== 'goes on' || body === NO_BODY) return outcome;
  // a response may arrive before its request is complete
  return (await Promise.race([sent, upstream.closed])) === true ? outcome : 'last';
}

/** Forwards a site's responses to one request. */
async function answer(
  site: HttpConnection,
  client: HttpConnection,
  { method, mayLock }: { method: string; mayLock: boolean },
): Promise<Outcome> {
  for (let hasBegun = false; ; hasBegun = true) {
    const text = await site.head();
    const head = text === undefined ? undefined : answerHead(text, method);
    if (head === undefined && hasBegun) return 'broken';
    if (head === undefined) return text === undefined ? 'silent' : 'unclear';
    if (mayLock && head.code === LOCKED) return 'locked';
    if (!(await site.pass(head.text, head.body, client.socket))) return 'broken';
    if (head.code >= 200) return head.isLast ? 'last' : 'goes on';
  }
}

/** The request as sent to the site, or to the proxy in front of it. */
function headFor(request: RequestHead, { url, via }: Target): string {
  const { method, version, isLast } = request;
  // not `search`: it omits the question mark of an empty query
  const path = url.href.slice(url.origin.length).replace(/#.*$/, '');
  const isProxied = via?.upstream.protocol === 'http';
  const target = isProxied ? url.origin + path : path;
  const lines = [`${method} ${target} ${version}`, `Host: ${url.host}`, ...request.lines];
  const basic = isProxied ? (via.authorization ?? basicOf(via.upstream)) : undefined;
  if (basic !== undefined) lines.push(`Proxy-Authorization: ${basic}`);
  lines.push(isLast ? 'Connection: close' : 'Connection: keep-alive');
  return `${lines.join('\r\n')}\r\n\r\n`;
}

const TITLES = { 400: 'Bad Request', 403: 'Forbidden', 502: 'Bad Gateway' } as const;

/** Answers a plain request, or CONNECT, with the reason, and closes the connection. */
export function refuse(
  rules: EgressRules,
  socket: Socket,
  refusal: Refusal,
  isTunnel = false,
): false {
  const { code, why, error } = refusal;
  rules.onRefusal?.(refusal);
  if (rules.isBrowser === true && code !== 400) {
    // without an error the site itself closed the connection, so the browser's is closed too
    socket.end(error === undefined ? '' : encodeNetError(error, isTunnel));
    return false;
  }
  const head = `HTTP/1.1 ${code} ${TITLES[code]}\r\ncontent-type: text/plain; charset=utf-8\r\n`;
  const length = `content-length: ${Buffer.byteLength(why) + 1}\r\n`;
  socket.end(`${head}${length}connection: close\r\n\r\n${why}\n`);
  return false;
}
