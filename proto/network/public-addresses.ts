/**
 * Which IP addresses are public. Both kinds of egress use it: the webhook sender and the
 * runner's egress broker. Source: proto/spec/webhooks.md 8 (IANA special-purpose registries). Pure:
 * text in, verdict out.
 */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

export const BLOCKED_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
/**
 * IPv6 is refused except for global unicast, and that except for these. NAT64 (64:ff9b::/96) is
 * outside.
 */
export const GLOBAL_IPV6 = '2000::/3';
export const BLOCKED_IPV6 = [
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
];

const blocked = cidrList([...BLOCKED_IPV4, ...BLOCKED_IPV6]);
const globalIpv6 = cidrList([GLOBAL_IPV6]);

/**
 * A list of CIDR blocks such as `10.0.0.0/8` or `::1/128`; a bare address is a block of one. Throws
 * on other text.
 */
export function cidrList(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', prefix, ...rest] = cidr.split('/');
    const bits = isIPv4(address) ? 32 : isIPv6(address) ? 128 : 0;
    const length = prefix === undefined ? bits : Number(prefix);
    const isWhole = /^\d+$/.test(prefix ?? '0');
    if (bits === 0 || rest.length > 0 || !isWhole || length > bits) {
      throw new TypeError(`not a CIDR block: ${cidr}`);
    }
    list.addSubnet(address, length, bits === 32 ? 'ipv4' : 'ipv6');
  }
  return list;
}

/**
 * Whether a connection to `address` (an IP address as text) is allowed: it is public, or in the
 * operator's list. Text that is not an IP address, or has a zone id, is refused.
 */
export function isAllowed(address: string, operator?: BlockList): boolean {
  const plain = unmapped(address);
  if (isIP(plain) === 0 || plain.includes('%')) return false;
  const family = isIPv4(plain) ? 'ipv4' : 'ipv6';
  if (operator?.check(plain, family)) return true;
  if (blocked.check(plain, family)) return false;
  return family === 'ipv4' || globalIpv6.check(plain, 'ipv6');
}

/** `::ffff:127.0.0.1` and `::ffff:7f00:1` are IPv4-mapped addresses. */
function unmapped(address: string): string {
  const match = /^(?:0*:){0,5}:?(?:0*:)*ffff:(.+)$/i.exec(address);
  const tail = match?.[1];
  if (tail === undefined || !isIPv6(address)) return address;
  if (isIPv4(tail)) return tail;
  const groups = tail.split(':').map((group) => Number.parseInt(group, 16));
  const [high, low] = groups;
  if (groups.length !== 2 || high === undefined || low === undefined) return address;
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
