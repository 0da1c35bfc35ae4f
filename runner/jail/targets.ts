/**
 * Where a connection out of a jail wants to go: judged (names.ts), sent its way (routes.ts), and
 * dialled at the addresses that were judged. Through a proxy the proxy looks names up, so a name
 * that is unknown here may pass; one that stands for a closed address here does not.
 */
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { cidrList } from '../../proto/addresses.ts';
import type { Log } from '../../proto/log.ts';
import type { Upstream } from '../../proto/proxies.ts';
import { judge, type Resolve, type Rules } from './names.ts';
import { type Route, upstreamFor } from './routes.ts';
import { tunnelThrough } from './upstream.ts';

const CONNECT_TIMEOUT_MS = 15_000;
/**
 * Of one address, when there are several. Ours: Node's 250 ms are less than a site on the other
 * side of the world takes, or this process when it is busy, and it goes back to none.
 */
const ATTEMPT_TIMEOUT_MS = 3_000;
/**
 * Nobody browses mail servers; an open door to them is a spammer's. Operators' own addresses are
 * judged alike.
 */
const CLOSED_PORTS: ReadonlySet<number> = new Set([25, 465, 587]);

/** The operator's proxy may stand anywhere, and so may what the operator names. */
const ALL = cidrList(['0.0.0.0/0', '::/0']);

type Address = { host: string; port: number; addresses: string[] };
/** `via`: the proxy that is dialled in its place. */
export type Target = Address & { url: URL; via?: { upstream: Upstream; at: Address } };
export type Refusal = { code: 400 | 403 | 502; why: string };

/** Whether a filter list names that address. */
export type IsBlocked = (url: URL) => boolean;

export type Aim = Rules & {
  log: Log;
  routes: readonly Route[];
  isBlocked?: IsBlocked | undefined;
  /** Asked for the operator's own names. */
  lookUp: Resolve;
  /** host:port that the operator names: open, wherever it is. */
  named?: ReadonlySet<string>;
  /** Told of each request that is refused, or leads nowhere. */
  onRefusal?: (refusal: Refusal) => void;
};

/** Parses, judges: the target with its checked addresses, or the refusal to send. */
export async function aim(
  way: Aim,
  text: string,
  scheme: 'http' | 'https' = 'http',
): Promise<Target | Refusal> {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.username !== '' || url.password !== '') {
    return { code: 400, why: 'this proxy takes CONNECT host:port and http:// URLs' };
  }
  const port = Number(url.port || 80);
  if (way.isBlocked?.(scheme === 'http' ? url : new URL(`https://${url.host}/`))) {
    return { code: 403, why: `${url.hostname} is on a filter list` };
  }
  const upstream = upstreamFor(bare(url.hostname), way.routes, scheme);
  const operators: Rules = { ...way, allow: ALL, resolve: way.lookUp };
  const isNamed = way.named?.has(`${url.hostname}:${port}`) ?? false;
  const verdict = await judge(url.hostname, isNamed ? operators : way);
  if (verdict.kind === 'unknown' && !upstream) {
    return { code: 502, why: `no address for ${url.hostname}` };
  }
  if (verdict.kind === 'denied' || CLOSED_PORTS.has(port)) return denied(way, url.host);
  const host = bare(url.hostname);
  const addresses = verdict.kind === 'allowed' ? verdict.addresses : [];
  if (!upstream) return { url, host, port, addresses };
  const proxy = await judge(upstream.host, upstream.isManaged ? operators : way);
  if (proxy.kind === 'unknown') return { code: 502, why: 'no address for the proxy' };
  if (proxy.kind === 'denied') return denied(way, `the proxy ${upstream.host}`);
  const at = { host: bare(upstream.host), port: upstream.port, addresses: proxy.addresses };
  return { url, host, port, addresses, via: { upstream, at } };
}

function denied({ log }: Aim, what: string): Refusal {
  log.info({ target: what }, 'egress denied');
  const why =
    `${what} is not reachable from here: ` +
    "private addresses, this machine's own and mail ports are closed";
  return { code: 403, why };
}

/** Connects, through its proxy when it has one; undefined when nobody answers. */
export async function dial(target: Target): Promise<Socket | undefined> {
  const { via } = target;
  if (!via) return await connected(target);
  return await tunnelThrough(
    { upstream: via.upstream, dial: () => connected(via.at) },
    { host: target.host, port: target.port },
  );
}

/** For plain requests: a proxy of http is told them whole, and needs no tunnel. */
export async function reach(target: Target): Promise<Socket | undefined> {
  const { via } = target;
  return via?.upstream.protocol === 'http' ? await connected(via.at) : await dial(target);
}

/** Whether a connection to the one serves the other. */
export function isSamePlace(one: Target, other: Target): boolean {
  const isSameHost = one.host === other.host && one.port === other.port;
  return isSameHost && one.via?.upstream === other.via?.upstream;
}

/** To the checked addresses, whichever answers first. */
async function connected(address: Address): Promise<Socket | undefined> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), CONNECT_TIMEOUT_MS);
  const socket = connect({ ...whereTo(address), noDelay: true, allowHalfOpen: true });
  socket.once('connect', () => resolve(true)).on('error', () => resolve(false));
  const isConnected = await promise;
  clearTimeout(timer);
  if (isConnected) return socket;
  socket.destroy();
  return undefined;
}

/** A literal is dialled as it is; a name is not looked up again: its checked addresses stand in. */
function whereTo({ host, port, addresses }: Address) {
  const lookup: LookupFunction = (_host, _options, answer) => {
    answer(
      null,
      addresses.map((address) => ({ address, family: isIP(address) })),
    );
  };
  const attempts = {
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_TIMEOUT_MS,
  };
  return { host, port, lookup, ...attempts };
}

/** Without the brackets of an IPv6 literal. */
function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
