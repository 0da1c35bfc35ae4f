/**
 * Connections through a tenant's or the operator's proxy: HTTP CONNECT with Basic credentials, the
 * same over TLS, or SOCKS5. The proxy's addresses were checked before dialling, like any target's.
 * Its own responses are neither forwarded nor logged with credentials, except the challenge of a
 * proxy that a client has configured without credentials.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { SocksClient } from 'socks';
import type { Upstream } from '../../../proto/network/session-proxies.ts';

const HANDSHAKE_TIMEOUT_MS = 15_000;
/** The proxy requires other credentials. */
export const LOCKED = 407;

export type Access = {
  upstream: Upstream;
  /** The client's credentials for a proxy without its own. */
  authorization?: string | undefined;
  /** The proxy rejected the credentials. */
  isLocked?: boolean;
};
type Rules = { hasCredentials?: boolean };
type Destination = { host: string; port: number };

/** Opens a tunnel through a connected proxy; undefined when the proxy refuses or is silent. */
export async function tunnelThrough(
  socket: Socket,
  access: Access,
  target: Destination,
): Promise<Socket | undefined> {
  const tunnel =
    access.upstream.protocol === 'socks5'
      ? await throughSocks(socket, access.upstream, target)
      : await throughConnect(socket, access, target);
  if (tunnel === undefined) socket.destroy();
  return tunnel;
}

/** Whether the client provides the proxy's credentials. */
export function usesClientCredentials(
  { hasCredentials }: Rules,
  { via }: { via?: Access },
): boolean {
  return hasCredentials === true && via !== undefined && basicOf(via.upstream) === undefined;
}

/** Forwards the client's credentials to the proxy. */
export function forwardCredentials(
  rules: Rules,
  target: { via?: Access },
  { authorization }: Pick<Access, 'authorization'>,
): void {
  if (target.via && usesClientCredentials(rules, target)) target.via.authorization = authorization;
}

/** Sends the proxy's challenge to the client and closes the connection. */
export function challenge(socket: Socket): false {
  const head = `HTTP/1.1 ${LOCKED} Proxy Authentication Required\r\nproxy-authenticate: Basic`;
  socket.end(`${head} realm="proxy"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
  return false;
}

/** The Proxy-Authorization header; undefined without credentials. */
export function basicOf({ username, password }: Upstream): string | undefined {
  if (username === undefined && password === undefined) return undefined;
  const pair = `${username ?? ''}:${password ?? ''}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

async function throughSocks(
  socket: Socket,
  { host, port, username, password }: Upstream,
  { host: site, port: sitePort }: Destination,
): Promise<Socket | undefined> {
  const credentials = username === undefined ? {} : { userId: username, password: password ?? '' };
  try {
    await SocksClient.createConnection({
      proxy: { host, port, type: 5, ...credentials },
      command: 'connect',
      destination: { host: site, port: sitePort },
      existing_socket: socket,
      timeout: HANDSHAKE_TIMEOUT_MS,
    });
    return socket;
  } catch {
    return undefined; // refused, or not a SOCKS server: the caller reports the failure
  }
}

async function throughConnect(
  socket: Socket,
  access: Access,
  { host, port }: Destination,
): Promise<Socket | undefined> {
  const { upstream } = access;
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const basic = access.authorization ?? basicOf(upstream);
  const isTls = upstream.protocol === 'https';
  const request = (isTls ? httpsRequest : httpRequest)({
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...(basic === undefined ? {} : { 'proxy-authorization': basic }) },
    timeout: HANDSHAKE_TIMEOUT_MS,
    // node accepts createConnection only without an agent, and TLS over a socket only with one
    ...(isTls ? { agent: false, socket, ...nameOf(upstream) } : { createConnection: () => socket }),
  });
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  request.on('connect', ({ statusCode = 0 }, tunnel, head) => {
    if (statusCode === LOCKED) access.isLocked = true;
    if (statusCode < 200 || statusCode > 299) return resolve(undefined);
    (tunnel as Socket).setTimeout(0);
    if (head.length > 0) tunnel.unshift(head);
    resolve(tunnel as Socket);
  });
  // a plain response to CONNECT is a refusal
  request.on('response', () => resolve(undefined)).on('timeout', () => resolve(undefined));
  request.on('error', () => resolve(undefined));
  request.end();
  return await promise;
}

/** The name in its certificate; an address is no server name (RFC 6066 3). */
function nameOf({ host }: Upstream): { host: string; servername?: string } {
  return isIP(host) === 0 ? { host, servername: host } : { host };
}
