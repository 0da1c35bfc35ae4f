/**
 * Credentials for a proxy that a client has configured without them: the proxy's challenge is sent
 * to the client, and the client's response to the proxy. Challenges of other proxies are not
 * forwarded.
 */
import type { Socket } from 'node:net';
import type { EgressRules, Target } from './dial.ts';
import type { RequestHead } from './http1.ts';
import { basicOf, LOCKED } from './upstream-proxy.ts';

/** Whether the client provides the proxy's credentials. */
export function asksClient({ hasCredentials }: EgressRules, { via }: Target): boolean {
  return hasCredentials === true && via !== undefined && basicOf(via.upstream) === undefined;
}

/** Forwards the client's credentials to the proxy. */
export function forwardCredentials(
  rules: EgressRules,
  target: Target,
  { authorization }: RequestHead,
): void {
  if (target.via && asksClient(rules, target)) target.via.authorization = authorization;
}

/** Sends the proxy's 407 to the client and closes the connection. */
export function challenge(socket: Socket): false {
  const asked = `HTTP/1.1 ${LOCKED} Proxy Authentication Required\r\nproxy-authenticate: Basic`;
  socket.end(`${asked} realm="proxy"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
  return false;
}
