/**
 * Connections through a tenant's or the operator's proxy: HTTP CONNECT with Basic credentials, the
 * same over TLS, or SOCKS5. The proxy's addresses were checked before dialling, like any target's.
 * Its own responses are neither forwarded nor logged with credentials.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { SocksClient } from 'socks';
import type { Upstream } from '../../../proto/network/session-proxies.ts';

const HANDSHAKE_TIMEOUT_MS = 15_000;
/** The proxy requires other credentials. */
export const LOCKED = 407;

/** An upstream whose name was resolved and checked; `dial` connects to it. */
export type Reached = {
  upstream: Upstream;
  dial: () => Promise<Socket | undefined>;
  /** The client's credentials for a proxy without its own. */
  authorization?: string | undefined;
  /** Called when the proxy rejects the credentials. */
  onLocked?(): void;
};

/** Opens a tunnel to the target; undefined when the proxy refuses or does not answer. */
export async function tunnelThrough(
  reached: Reached,
  target: { host: string; port: number },
): Promise<Socket | undefined> {
  const { upstream } = reached;
  const socket = await reached.dial();
  if (socket === undefined) return undefined;
  const tunnel =
    upstream.protocol === 'socks5'
      ? await throughSocks(socket, upstream, target)
      : await throughConnect(socket, reached, target);
  if (tunnel === undefined) socket.destroy();
  return tunnel;
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
  target: { host: string; port: number },
): Promise<Socket | undefined> {
  const credentials = username === undefined ? {} : { userId: username, password: password ?? '' };
  try {
    await SocksClient.createConnection({
      proxy: { host, port, type: 5, ...credentials },
      command: 'connect',
      destination: target,
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
  { upstream, authorization, onLocked }: Reached,
  { host, port }: { host: string; port: number },
): Promise<Socket | undefined> {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const basic = authorization ?? basicOf(upstream);
  const isTls = upstream.protocol === 'https';
  const asking = (isTls ? httpsRequest : httpRequest)({
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...(basic === undefined ? {} : { 'proxy-authorization': basic }) },
    timeout: HANDSHAKE_TIMEOUT_MS,
    // node accepts createConnection only without an agent, and TLS over a socket only with one
    ...(isTls ? { agent: false, socket, ...nameOf(upstream) } : { createConnection: () => socket }),
  });
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  asking.on('connect', ({ statusCode = 0 }, tunnel, head) => {
    if (statusCode === LOCKED) onLocked?.();
    if (statusCode < 200 || statusCode > 299) return resolve(undefined);
    (tunnel as Socket).setTimeout(0);
    if (head.length > 0) tunnel.unshift(head);
    resolve(tunnel as Socket);
  });
  // a plain response to CONNECT is a refusal
  asking.on('response', () => resolve(undefined)).on('timeout', () => resolve(undefined));
  asking.on('error', () => resolve(undefined));
  asking.end();
  return await promise;
}

/** The name in its certificate; an address is no server name (RFC 6066 3). */
function nameOf({ host }: Upstream): { host: string; servername?: string } {
  return isIP(host) === 0 ? { host, servername: host } : { host };
}
