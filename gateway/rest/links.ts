/**
 * Links in answers: core gives path and query, because it knows no hosts; here they get the address
 * that clients reach us by. Pure.
 */
import type { IncomingMessage } from 'node:http';
import type { JsonValue } from '@bufbuild/protobuf';
import type { Links } from './operations.ts';

/** The answer with the address before each of its links; those that are absent stay so. */
export function absoluteLinks(answer: JsonValue, links: Links, baseUrl: string): JsonValue {
  if (Array.isArray(answer)) return answer.map((one) => absoluteLinks(one, links, baseUrl));
  if (typeof answer !== 'object' || answer === null) return answer;
  const shown = { ...answer };
  for (const [name, kind] of links) {
    const value = shown[name];
    if (value === undefined || value === '') continue;
    if (kind === 'link') shown[name] = `${baseUrl}${value}`;
    else if (kind === 'websocket') shown[name] = `${websocketUrl(baseUrl)}${value}`;
    else shown[name] = absoluteLinks(value, kind, baseUrl);
  }
  return shown;
}

/** The same address for WebSockets: ws: for http:, wss: for https:. */
export function websocketUrl(baseUrl: string): string {
  return baseUrl.replace(/^http/, 'ws');
}

/**
 * The address that this client used, for when TABERN_PUBLIC_URL is not set: as we listen, and not
 * as a proxy in front may. Its Host names nobody else's answer; one that is none gives the socket's
 * own.
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
