/**
 * Which URLs may be a webhook's endpoint, by their text: scheme, port, name, literal address. Core
 * checks at registration, the sender before each attempt; the sender also checks the resolved
 * addresses. Pure. Source: proto/spec/webhooks.md 8.
 */
import { type BlockList, isIP } from 'node:net';
import { isAllowed } from './public-addresses.ts';

/** In characters. Source: proto/spec/webhooks.md 8. */
export const ENDPOINT_MAX_LENGTH = 2_048;

const PORTS_UNPRIVILEGED_MIN = 1_024;
/** Ours: services that trust any client of their port; an HTTP request may be read as commands. */
const PORTS_DENIED: ReadonlySet<number> = new Set([
  1433, 1521, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5672, 5900, 5984, 6000, 6379, 6443,
  6667, 9042, 9092, 9200, 9300, 10250, 11211, 27017, 27018,
]);
/** Names of this machine or this network. RFC 6761, RFC 6762, RFC 8375; `internal` by ICANN. */
const LOCAL_SUFFIXES = ['localhost', 'local', 'internal', 'home.arpa', 'localdomain', 'intranet'];
const LOOPBACKS = ['127.0.0.1', '::1'];

export type Verdict = { ok: true; key: string } | { ok: false; problem: string };

/**
 * Whether `text` may be an endpoint. `key` is the normalised URL: endpoints with equal keys are the
 * same. `operator` is the operator's list of addresses in addition to public ones.
 */
export function checkEndpoint(text: string, operator?: BlockList): Verdict {
  if (text.length > ENDPOINT_MAX_LENGTH) return no(`exceeds ${ENDPOINT_MAX_LENGTH} characters`);
  // The parser repairs `https:/x` and `https:///x`; the interface refuses both.
  if (!/^https:\/\/[^/?#\\]+/i.test(text) || !URL.canParse(text)) return no('is not an https URL');
  const url = new URL(text);
  if (url.protocol !== 'https:') return no('is not an https URL');
  if (url.username !== '' || url.password !== '') return no('holds credentials');
  if (text.includes('#')) return no('holds a fragment');
  const address = literalAddress(url.hostname);
  const isByOperator = operator !== undefined && isListed(url.hostname, operator);
  if (!isPortAllowed(url.port, isByOperator)) return no('uses a port that is not allowed');
  const isPublic = address === undefined ? isPublicName(url.hostname) : isAllowed(address);
  if (!isPublic && !isByOperator) return no('names a host that is not public');
  return { ok: true, key: url.href };
}

/** The address of a literal host; undefined for a name. `hostname` is that of `new URL`. */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/\.$/, '');
  return isIP(bare) === 0 ? undefined : bare;
}

/** Whether `hostname` is localhost, which the sender resolves itself. */
export function isLocalhost(hostname: string): boolean {
  return hostname.replace(/\.$/, '').toLowerCase() === 'localhost';
}

/**
 * Whether the operator's list contains the literal address, or loopback when the name is localhost.
 */
function isListed(hostname: string, operator: BlockList): boolean {
  const address = literalAddress(hostname);
  const meant = isLocalhost(hostname) ? LOOPBACKS : address === undefined ? [] : [address];
  return meant.some((one) => operator.check(one, one.includes(':') ? 'ipv6' : 'ipv4'));
}

function isPublicName(hostname: string): boolean {
  const name = hostname.replace(/\.$/, '').toLowerCase();
  if (!name.includes('.') || name.includes('..') || name.startsWith('.')) return false;
  return !LOCAL_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}

/**
 * `port` is empty for 443. The operator's hosts may use any port except those of databases and
 * similar services.
 */
function isPortAllowed(port: string, isByOperator: boolean): boolean {
  if (port === '') return true;
  const number = Number(port);
  if (PORTS_DENIED.has(number)) return false;
  return isByOperator ? number > 0 : number >= PORTS_UNPRIVILEGED_MIN;
}

function no(problem: string): Verdict {
  return { ok: false, problem };
}
