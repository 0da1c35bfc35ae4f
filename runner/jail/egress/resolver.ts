/**
 * Resolves host names and checks whether their addresses may be dialled. The checked addresses are
 * the ones dialled, so a name that changes in between (DNS rebinding) gains nothing.
 */
import { lookup, Resolver } from 'node:dns/promises';
import { type BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { cidrList, isAllowed } from '../../../proto/network/public-addresses.ts';

const DNS_TIMEOUT_MS = 5_000;
const DNS_TRIES = 2;
/** Names cached per jail. Ours. */
const NAMES_MAX = 1_000;
/** RFC 6761. /etc/hosts is not read: its names are the operator's, not the tenant's. */
const LOOPBACK = ['127.0.0.1', '::1'];

type HostCheck =
  | { kind: 'allowed'; addresses: string[] }
  | { kind: 'denied' }
  | { kind: 'unknown' };

export type Rules = {
  /** Addresses that may be reached although they are private, or this machine's. */
  allow: BlockList;
  resolve: Resolve;
  /** This machine's: `ownAddresses`. */
  own: BlockList;
};

/** Returns every address of a name, v4 and v6; empty when there is none. */
export type Resolve = (name: string) => Promise<string[]>;

/** Queries the name servers itself: dns.lookup reads /etc/hosts and blocks libuv's thread pool. */
export function openResolve(): Resolve {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
}

/** Resolves as the operator's own programs do, with /etc/hosts. For the operator's own names. */
export const lookUp: Resolve = async (name) => {
  const [answer] = await Promise.allSettled([lookup(name, { all: true })]);
  return answer.status === 'fulfilled' ? answer.value.map(({ address }) => address) : [];
};

/**
 * Caches results for `keptMs`, not failures: a page opens dozens of connections to one host, and
 * Chrome behind a proxy caches no names itself.
 */
export function remembering(resolve: Resolve, keptMs: number, now = performance.now): Resolve {
  const known = new Map<string, { until: number; addresses: Promise<string[]> }>();
  return (name) => {
    const at = now.call(performance);
    const found = known.get(name);
    if (found && found.until > at) return found.addresses;
    if (known.size >= NAMES_MAX) known.clear();
    const addresses = resolve(name);
    known.set(name, { until: at + keptMs, addresses });
    const forget = () => void known.delete(name);
    addresses.then((all) => all.length > 0 || forget(), forget);
    return addresses;
  };
}

/**
 * `hostname` is a parsed URL's: the parser has already normalised `2130706433` and `0x7f.1` to
 * 127.0.0.1. One forbidden address among many forbids the name.
 */
export async function checkHost(hostname: string, rules: Rules): Promise<HostCheck> {
  const { allow, resolve } = rules;
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) !== 0) return check([host], rules);
  if (host === 'localhost' || host.endsWith('.localhost')) {
    // both are this machine: one opened by the operator is sufficient
    const opened = LOOPBACK.filter((address) => isAllowed(address, allow));
    return opened.length > 0 ? check(opened, rules) : { kind: 'denied' };
  }
  return check(await resolve(host), rules);
}

/** This machine's, public ones too: connections from here bypass the firewall before its ports. */
export function ownAddresses(): BlockList {
  const found = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return cidrList(found.map(({ address }) => address.replace(/%.*$/, '')));
}

function contains(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

function check(addresses: string[], { allow, own }: Rules): HostCheck {
  if (addresses.length === 0) return { kind: 'unknown' };
  const isOpen = addresses.every((address) => {
    return isAllowed(address, allow) && (contains(allow, address) || !contains(own, address));
  });
  return isOpen ? { kind: 'allowed', addresses } : { kind: 'denied' };
}
