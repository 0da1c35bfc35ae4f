/**
 * Address checks of the sender: each address of a name, and again that of the connected socket. One
 * blocked address blocks the attempt: mixed answers are an attack. Names are resolved by c-ares:
 * `dns.lookup` shares a slow pool, in which four silent servers delayed every other lookup by over
 * 15 s. /etc/hosts is not used; only localhost is resolved locally. proto/spec/webhooks.md 8.
 */
import { promises as dns } from 'node:dns';
import type { BlockList, LookupFunction } from 'node:net';
import { isAllowed } from '../../proto/network/public-addresses.ts';
import { checkEndpoint, isLocalhost } from '../../proto/network/webhook-endpoint.ts';

/** In milliseconds, per try; and the number of tries. Source: proto/spec/webhooks.md 5. */
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;
/** In milliseconds, for both tries: c-ares waits longer in the second, and queries each server. */
const DNS_MAX_MS = DNS_TIMEOUT_MS * DNS_TRIES;
/** A name with more addresses is refused. Source: proto/spec/webhooks.md 8. */
const ANSWERS_MAX = 16;
const LOOPBACKS = ['127.0.0.1', '::1'];

/** Never contains the address: it would reveal the network of the service. */
export class BlockedAddress extends Error {
  override readonly name = 'BlockedAddress';
  constructor() {
    super('address not allowed');
  }
}

/** The name has no address, or no DNS server answered in time. */
export class UnresolvedName extends Error {
  override readonly name = 'UnresolvedName';
}

/** All addresses of a name, IPv4 and IPv6. */
export type Resolve = (name: string) => Promise<string[]>;

export type Guard = {
  /** Throws BlockedAddress when it is not allowed; `lookup` never receives literal addresses. */
  checkUrl(endpoint: string): void;
  /** Throws BlockedAddress for a socket's remote address that is not allowed. */
  checkAddress(address: string | undefined): void;
  /** The lookup hook of a socket. */
  lookup: LookupFunction;
};

/** `allow` is the operator's list of addresses in addition to public ones. */
export function openGuard(allow: BlockList, resolve: Resolve = dnsResolver()): Guard {
  async function vetted(name: string): Promise<string[]> {
    if (isLocalhost(name)) {
      const local = LOOPBACKS.filter((address) => isAllowed(address, allow));
      if (local.length === 0) throw new BlockedAddress();
      return local;
    }
    const addresses = await resolve(name);
    if (addresses.length === 0 || addresses.length > ANSWERS_MAX) {
      throw new UnresolvedName('the name did not resolve');
    }
    if (!addresses.every((address) => isAllowed(address, allow))) throw new BlockedAddress();
    return addresses;
  }

  return {
    checkUrl(endpoint) {
      if (!checkEndpoint(endpoint, allow).ok) throw new BlockedAddress();
    },
    checkAddress(address) {
      if (address === undefined || !isAllowed(address, allow)) throw new BlockedAddress();
    },
    lookup(name, options, answer) {
      vetted(name).then(
        (addresses) => {
          const all = addresses.map((address) => ({ address, family: familyOf(address) }));
          const [first] = all;
          if (options.all) answer(null, all);
          else answer(null, first?.address ?? '', first?.family ?? 0);
        },
        (error: NodeJS.ErrnoException) => answer(error, '', 0),
      );
    },
  };
}

function familyOf(address: string): 4 | 6 {
  return address.includes(':') ? 6 : 4;
}

/**
 * Queries A and AAAA concurrently; one answer is enough. `servers` default to the system's. Uses
 * its own resolver, so that its waits delay no other lookup.
 */
export function dnsResolver(servers?: readonly string[]): Resolve {
  const resolver = new dns.Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (servers) resolver.setServers(servers);
  return async (name) => {
    const asked = Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const answers = await within(asked, DNS_MAX_MS);
    const addresses = answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    if (addresses.length > 0) return addresses;
    throw new UnresolvedName('the name did not resolve');
  };
}

async function within<T>(answer: Promise<T>, maxMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new UnresolvedName('no DNS server answered')), maxMs);
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
