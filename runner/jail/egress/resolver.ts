/**
 * Which addresses a host name stands for, and whether they may be dialled. The answer is decided on
 * the addresses that are then dialled, so a name that changes its mind in between (DNS rebinding)
 * gains nothing.
 */
import { lookup, Resolver } from 'node:dns/promises';
import { type BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { cidrList, isAllowed } from '../../../proto/network/public-addresses.ts';

const DNS_TIMEOUT_MS = 5_000;
const DNS_TRIES = 2;
/** Names kept of one jail. Ours. */
const NAMES_MAX = 1_000;
/**
 * Answered here, as RFC 6761 asks; /etc/hosts is not read: its names are the operator's, not the
 * tenant's.
 */
const LOOPBACK = ['127.0.0.1', '::1'];

export type HostCheck =
  | { kind: 'allowed'; addresses: string[] }
  | { kind: 'denied' }
  | { kind: 'unknown' };

export type Rules = {
  /** Addresses that may be reached though they are not public, or this machine's. */
  allow: BlockList;
  resolve: Resolve;
  /** This machine's: `ownAddresses`. */
  own: BlockList;
};

/** Gives every address of a name, v4 and v6; empty when there is none. */
export type Resolve = (name: string) => Promise<string[]>;

/**
 * Asks the machine's name servers by itself: dns.lookup would read /etc/hosts and block the file
 * system's threads.
 */
export function openResolve(): Resolve {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  return async (name) => {
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
}

/** As the operator's own programs find a name: in /etc/hosts, too. For the operator's own. */
export const lookUp: Resolve = async (name) => {
  const [answer] = await Promise.allSettled([lookup(name, { all: true })]);
  return answer.status === 'fulfilled' ? answer.value.map(({ address }) => address) : [];
};

/**
 * Asks for a name once in so many milliseconds: a page opens dozens of connections to one host, and
 * Chrome, behind a proxy, keeps no names itself. What could not be found is asked for again.
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
 * `hostname` is a parsed URL's: the parser has already turned `2130706433` and `0x7f.1` into
 * 127.0.0.1. One forbidden address among many forbids the name.
 */
export async function checkHost(hostname: string, rules: Rules): Promise<HostCheck> {
  const { allow, resolve } = rules;
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) !== 0) return check([host], rules);
  if (host === 'localhost' || host.endsWith('.localhost')) {
    // both are this machine: what the operator opened of it is enough
    const opened = LOOPBACK.filter((address) => isAllowed(address, allow));
    return opened.length > 0 ? check(opened, rules) : { kind: 'denied' };
  }
  return check(await resolve(host), rules);
}

/**
 * Addresses of this machine, public ones too: what is dialled from here goes round the firewall
 * that guards its ports from outside.
 */
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
