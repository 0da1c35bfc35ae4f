/**
 * Connections through a proxy of the tenant's or the operator's: HTTP CONNECT with Basic
 * credentials, the same over TLS, or SOCKS5. The proxy is dialled at addresses that were judged
 * before, like any target. What it says of itself reaches nobody but our log, without credentials.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { SocksClient } from 'socks';
import type { Upstream } from '../../../proto/network/session-proxies.ts';

const HANDSHAKE_TIMEOUT_MS = 15_000;
/** A proxy wants other credentials. */
export const LOCKED = 407;

/** An upstream whose name was looked up and judged; `dial` reaches it. */
export type Reached = {
  upstream: Upstream;
  dial: () => Promise<Socket | undefined>;
  /** What the client says for the proxy, which has no credentials of its own. */
  authorization?: string | undefined;
  /** Called when the proxy wants other credentials. */
  onLocked?(): void;
};

/** A tunnel to the target; undefined when the proxy refuses or does not answer. */
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

/** The header that an http proxy wants; undefined without credentials. */
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
    return undefined; // refused, or no SOCKS at all: the caller says that the way is closed
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
    // node takes createConnection only where no agent is named, and TLS over a socket only with one
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
  // a plain answer to CONNECT is a refusal
  asking.on('response', () => resolve(undefined)).on('timeout', () => resolve(undefined));
  asking.on('error', () => resolve(undefined));
  asking.end();
  return await promise;
}

/** Whom its certificate must name; an address is no server name (RFC 6066 3). */
function nameOf({ host }: Upstream): { host: string; servername?: string } {
  return isIP(host) === 0 ? { host, servername: host } : { host };
}
