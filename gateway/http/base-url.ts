/** The address of this service as the client of a request knows it. */
import type { IncomingMessage } from 'node:http';

/**
 * The origin of the request, used without TABERN_PUBLIC_URL: the scheme of the listener, not of a
 * proxy in front. The Host header affects only its own answer; without a valid one, the socket's
 * address is used.
 */
export function baseUrlOf({ req }: { req: IncomingMessage }): string {
  const scheme = 'encrypted' in req.socket ? 'https' : 'http';
  const host = req.headers.host ?? '';
  const url = /^[\w.:[\]-]+$/.test(host) ? URL.parse(`${scheme}://${host}`) : null;
  if (url) return url.origin;
  const { localAddress = '127.0.0.1', localPort } = req.socket;
  const own = localAddress.includes(':') ? `[${localAddress}]` : localAddress;
  return `${scheme}://${own}:${localPort}`;
}
