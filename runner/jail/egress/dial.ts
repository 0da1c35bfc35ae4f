/**
 * Resolves and dials the target of a connection out of a jail: checks it (resolver.ts), selects its
 * route (routes.ts), and connects to the checked addresses. A proxy resolves names itself, so a
 * name that is unknown here is allowed with a proxy; a name that resolves to a closed address here
 * is not.
 */
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import type { Log } from '../../../proto/common/log.ts';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import type { Upstream } from '../../../proto/network/session-proxies.ts';
import type { NetError } from './net-errors.ts';
import { checkHost, type Resolve, type Rules } from './resolver.ts';
import { type Route, upstreamFor } from './routes.ts';
import { tunnelThrough } from './upstream-proxy.ts';

const CONNECT_TIMEOUT_MS = 15_000;
/**
 * Per address, when there are several. Ours: Node's 250 ms are too short for distant sites, or when
 * this process is busy, and no address is tried twice.
 */
const ATTEMPT_TIMEOUT_MS = 3_000;
/**
 * Browsers do not need mail ports; open ones would be abused for spam. They are closed for
 * operator-defined addresses too.
 */
const CLOSED_PORTS: ReadonlySet<number> = new Set([25, 465, 587]);

/** The operator's proxy may be anywhere, and so may addresses that the operator names. */
const ALL = cidrList(['0.0.0.0/0', '::/0']);

type Address = { host: string; port: number; addresses: string[] };
/** `via`: the proxy that is dialled instead. */
export type Target = Address & { url: URL; via?: Via };
type Via = {
  upstream: Upstream;
  at: Address;
  /** The client's credentials for a proxy without its own. */
  authorization?: string | undefined;
  /** The proxy rejected the credentials. */
  isLocked?: boolean;
};
/** `error`: what a browser without a proxy reports; absent for requests that no browser sends. */
export type Refusal = { code: 400 | 403 | 502; why: string; error?: NetError };

/** Whether a filter list contains that address. */
export type IsBlocked = (url: URL) => boolean;

export type EgressRules = Rules & {
  log: Log;
  routes: readonly Route[];
  isBlocked?: IsBlocked | undefined;
  /** The client provides credentials for proxies without their own. */
  hasCredentials?: boolean;
  /** Resolves the operator's own names. */
  lookUp: Resolve;
  /** host:port pairs named by the operator: always open. */
  named?: ReadonlySet<string>;
  /** Called for each request that is refused or fails. */
  onRefusal?: (refusal: Refusal) => void;
  /** The client is a browser: it gets a net error instead of an error page. */
  isBrowser?: boolean;
};

/**
 * Parses and checks an address: returns the target with its checked addresses, or the refusal to
 * send.
 */
export async function resolveTarget(
  rules: EgressRules,
  text: string,
  scheme: 'http' | 'https' = 'http',
): Promise<Target | Refusal> {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.username !== '' || url.password !== '') {
    return { code: 400, why: 'this proxy takes CONNECT host:port and http:// URLs' };
  }
  const port = Number(url.port || 80);
  if (rules.isBlocked?.(scheme === 'http' ? url : new URL(`https://${url.host}/`))) {
    const why = `${url.hostname} is on a filter list`;
    return { code: 403, why, error: 'BLOCKED_BY_CLIENT' };
  }
  const upstream = await upstreamFor(bare(url.hostname), rules.routes, scheme);
  const operators: Rules = { ...rules, allow: ALL, resolve: rules.lookUp };
  const isNamed = rules.named?.has(`${url.hostname}:${port}`) ?? false;
  const checked = await checkHost(url.hostname, isNamed ? operators : rules);
  if (checked.kind === 'unknown' && !upstream) {
    return { code: 502, why: `no address for ${url.hostname}`, error: 'NAME_NOT_RESOLVED' };
  }
  if (checked.kind === 'denied' || CLOSED_PORTS.has(port)) return refuseTarget(rules, url.host);
  const host = bare(url.hostname);
  const addresses = checked.kind === 'allowed' ? checked.addresses : [];
  if (!upstream) return { url, host, port, addresses };
  const proxy = await checkHost(upstream.host, upstream.isManaged ? operators : rules);
  if (proxy.kind === 'unknown') return proxyFailed('no address for the proxy');
  const isMail = CLOSED_PORTS.has(upstream.port) && !upstream.isManaged;
  if (proxy.kind === 'denied' || isMail) return refuseTarget(rules, `the proxy ${upstream.host}`);
  const at = { host: bare(upstream.host), port: upstream.port, addresses: proxy.addresses };
  return { url, host, port, addresses, via: { upstream, at } };
}

function refuseTarget({ log }: EgressRules, what: string): Refusal {
  log.info({ target: what }, 'egress denied');
  const why =
    `${what} is not reachable from here: ` +
    "private addresses, this machine's own and mail ports are closed";
  return { code: 403, why, error: 'ADDRESS_UNREACHABLE' };
}

export function proxyFailed(why: string): Refusal {
  return { code: 502, why, error: 'PROXY_CONNECTION_FAILED' };
}

/** Connects, through its proxy when it has one. */
export async function dial(target: Target): Promise<Socket | Refusal> {
  const { via, host } = target;
  if (!via) return await connected(target);
  const toProxy = async (): Promise<Socket | undefined> => {
    const socket = await connected(via.at);
    return 'why' in socket ? undefined : socket;
  };
  const onLocked = (): void => {
    via.isLocked = true;
  };
  const { upstream, authorization } = via;
  const reached = { upstream, authorization, dial: toProxy, onLocked };
  const socket = await tunnelThrough(reached, { host, port: target.port });
  return socket ?? proxyFailed(`${host} does not answer`);
}

/** For plain requests: an http proxy takes the whole request and needs no tunnel. */
export async function connectFor(target: Target): Promise<Socket | Refusal> {
  const { via, host } = target;
  if (via?.upstream.protocol !== 'http') return await dial(target);
  const socket = await connected(via.at);
  return 'why' in socket ? proxyFailed(`${host} does not answer`) : socket;
}

/** Whether a connection to one target can serve the other. */
export function isSameDestination(one: Target, other: Target): boolean {
  const isSameHost = one.host === other.host && one.port === other.port;
  return isSameHost && one.via?.upstream === other.via?.upstream;
}

/** Connects to the checked addresses, whichever answers first. */
async function connected(address: Address): Promise<Socket | Refusal> {
  const { promise, resolve } = Promise.withResolvers<NetError | undefined>();
  const timer = setTimeout(() => resolve('CONNECTION_TIMED_OUT'), CONNECT_TIMEOUT_MS);
  const socket = connect({ ...connectOptions(address), noDelay: true, allowHalfOpen: true });
  socket
    .once('connect', () => resolve(undefined))
    .on('error', (failure) => {
      resolve(errorOf(failure));
    });
  const error = await promise;
  clearTimeout(timer);
  if (error === undefined) return socket;
  socket.destroy();
  return { code: 502, why: `${address.host} does not answer`, error };
}

/** Of several addresses, the error of the last one. */
function errorOf(failure: NodeJS.ErrnoException): NetError {
  const { code } = failure instanceof AggregateError ? failure.errors.at(-1) : failure;
  if (code === 'ECONNREFUSED') return 'CONNECTION_REFUSED';
  return code === 'ETIMEDOUT' ? 'CONNECTION_TIMED_OUT' : 'ADDRESS_UNREACHABLE';
}

/** A literal is dialled directly; a name is not resolved again: its checked addresses are used. */
function connectOptions({ host, port, addresses }: Address) {
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
