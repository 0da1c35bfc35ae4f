/**
 * Links in answers: core returns path and query, because it does not know the public address; the
 * gateway adds the origin. Pure.
 */
import type { JsonValue } from '@bufbuild/protobuf';
import type { Marks } from './messages.ts';

export type Links = Marks<'link' | 'websocket'>;

/** Returns the answer with the origin added to each of its links; absent links stay absent. */
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

/** The origin for WebSockets: ws: for http:, wss: for https:. */
export function websocketUrl(baseUrl: string): string {
  return baseUrl.replace(/^http/, 'ws');
}
