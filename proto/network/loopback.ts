/** Hosts of this machine alone: bytes to its loopback cross no network. Pure. */
import { BlockList, isIP, isIPv6 } from 'node:net';
import { hostOf } from './hosts.ts';
import { cidrList } from './public-addresses.ts';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Loopback, link-local, unspecified and multicast addresses. */
const NOT_REMOTE = cidrList([
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3'],
  ...['::/127', 'fe80::/10', 'ff00::/8'],
]);

/** `host`: a name or an address, without brackets. */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost';
  return LOOPBACK.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
}

/**
 * Whether another machine may have that host: a name, or an address of a network. Other spellings
 * of an address, such as `127.1`, are that address. `host`: without brackets.
 */
export function isRemote(host: string): boolean {
  let plain: string;
  try {
    plain = hostOf(host).replace(/^\[|\]$/g, '');
  } catch {
    return false;
  }
  if (isIP(plain) === 0) return plain !== '*' && !/(?:^|\.)localhost$/.test(plain);
  return !NOT_REMOTE.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}

/** The host of `host:port` or `[address]:port`, without brackets; '' for other text. */
export function hostIn(address: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([^:/]+)):\d{1,5}$/.exec(address) ?? [];
  return bracketed ?? plain ?? '';
}
