/**
 * Credentials for a proxy that a client has named without them: the proxy's question goes to the
 * client, and the client's answer to the proxy. Of any other proxy the client learns nothing.
 */
import type { Socket } from 'node:net';
import type { EgressRules, Target } from './dial.ts';
import type { RequestHead } from './http1.ts';
import { basicOf, LOCKED } from './upstream-proxy.ts';

/** Whether the proxy's credentials are the client's to give. */
export function asksClient({ hasCredentials }: EgressRules, { via }: Target): boolean {
  return hasCredentials === true && via !== undefined && basicOf(via.upstream) === undefined;
}

/** Hands on what the client says for the proxy. */
export function forwardCredentials(
  rules: EgressRules,
  target: Target,
  { authorization }: RequestHead,
): void {
  if (target.via && asksClient(rules, target)) target.via.authorization = authorization;
}

/** As the proxy itself would ask for credentials; ends the connection. */
export function challenge(socket: Socket): false {
  const asked = `HTTP/1.1 ${LOCKED} Proxy Authentication Required\r\nproxy-authenticate: Basic`;
  socket.end(`${asked} realm="proxy"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
  return false;
}
