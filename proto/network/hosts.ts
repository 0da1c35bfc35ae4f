/**
 * Lists of hosts in settings of a session: a name stands for itself and its subdomains, an address
 * for itself, `*` for every host. Compared as URLs have them: lower case, IDNA, canonical
 * addresses. Pure.
 */
import { isIPv6 } from 'node:net';

const EVERY_HOST = '*';
/** As URLs have it. RFC 4291 2.5.5.2. */
const MAPPED = /^\[::ffff:([\da-f]{1,4}):([\da-f]{1,4})\]$/;
/** A host alone: without a scheme, user, port, path or another `*`. */
const HOST = /^(?:[^\s/?#@:*\\[\]]+|\[[\da-f:.]+\])$/i;

/** One entry, in the form of URLs; `*.example.com` is `example.com`. Throws for other text. */
export function hostOf(entry: string): string {
  if (entry === EVERY_HOST) return entry;
  const text = entry.replace(/^\*\./, '');
  const host = isIPv6(text) ? `[${text}]` : text;
  const url = HOST.test(host) ? URL.parse(`http://${host}/`) : null;
  if (url === null) throw new TypeError('is not a host');
  return canonical(url.hostname);
}

/** Whether the list contains a host (URL.hostname); its cost grows with the host's labels alone. */
export function hostList(entries: readonly string[]): (hostname: string) => boolean {
  const hosts = new Set(entries.map(hostOf));
  if (hosts.has(EVERY_HOST)) return () => true;
  return (hostname) => {
    const labels = canonical(hostname).split('.');
    return labels.some((_, index) => hosts.has(labels.slice(index).join('.')));
  };
}

/** `example.com.` is `example.com`, and an IPv4 address in IPv6 is that address. */
function canonical(hostname: string): string {
  const [, high, low] = MAPPED.exec(hostname) ?? [];
  if (high === undefined || low === undefined) return hostname.replace(/\.+$/, '');
  const words = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return words.flatMap((word) => [word >> 8, word & 0xff]).join('.');
}
