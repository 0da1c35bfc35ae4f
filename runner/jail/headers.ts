/**
 * Headers as a proxy passes them on: in order, as spelled, without those that concern one hop only.
 * Pure.
 */

/** RFC 9110 7.6.1. `upgrade` too: a WebSocket goes through CONNECT. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Takes and gives Node's flat list: name, value, name, value. Names that `Connection` lists are
 * dropped too.
 */
export function forwardHeaders(raw: readonly string[]): string[] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    pairs.push([raw[index] ?? '', raw[index + 1] ?? '']);
  }
  const listed = pairs
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.split(',').map((one) => one.trim().toLowerCase()));
  const dropped = new Set([...HOP_BY_HOP, ...listed]);
  return pairs.filter(([name]) => !dropped.has(name.toLowerCase())).flat();
}
