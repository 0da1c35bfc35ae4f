/**
 * Links in answers: core gives path and query, because it knows no hosts; here they get the address
 * that clients reach us by. Pure.
 */
import type { IncomingMessage } from 'node:http';
import type { JsonValue } from '@bufbuild/protobuf';

/** The answer with the address before each of its links, which are fields of its own. */
export function absoluteLinks(
  answer: JsonValue,
  links: readonly string[],
  baseUrl: string,
): JsonValue {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return answer;
  const absolute = links.map((name) => [name, `${baseUrl}${answer[name]}`]);
  return { ...answer, ...Object.fromEntries(absolute) };
}

/**
 * The address that this client used, for when TABERN_PUBLIC_URL is not set: plain HTTP, as we
 * listen. Its Host names nobody else's answer; one that is none gives the socket's own.
 */
export function baseUrlOf({ req }: { req: IncomingMessage }): string {
  const host = req.headers.host ?? '';
  const url = /^[\w.:[\]-]+$/.test(host) ? URL.parse(`http://${host}`) : null;
  if (url) return url.origin;
  const { localAddress = '127.0.0.1', localPort } = req.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
