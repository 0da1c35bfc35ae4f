/**
 * Resolves and dials the target of a connection out of a jail: checks it (resolver.ts), selects its
 * route (routes.ts), and connects to the checked addresses. A proxy resolves names itself, so a
 * name that is unknown here is allowed with a proxy; a name that resolves to a closed address here
 * is not.
 */
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import type { NetError } from './net-errors.ts';
import { checkHost, type Resolve, type Rules } from './resolver.ts';
import { type Route, upstreamFor } from './routes.ts';
import { type Access, tunnelThrough } from './upstream-proxy.ts';

const CONNECT_TIMEOUT_MS = 15_000;
/**
 * Per address, when there are several. Ours: Node's 250 ms are too short for distant sites and a
 * busy process, and no address is tried twice.
 */
const ATTEMPT_TIMEOUT_MS = 3_000;
/** Of mail: browsers do not need them, spam does. Closed for operator-defined addresses, too. */
const CLOSED_PORTS: ReadonlySet<number> = new Set([25, 465, 587]);

/** RFC 1035 2.3.4. Refusals are logged with the name. */
const NAME_MAX_CHARS = 253;

/** The operator's proxy may be anywhere, and so may addresses that the operator names. */
const ALL = cidrList(['0.0.0.0/0', '::/0']);

type Address = { host: string; port: number; addresses: string[] };
/** `via`: the proxy that is dialled instead. */
export type Target = Address & { url: URL; via?: Access & { at: Address } };
/** `error`: what a browser without a proxy reports; absent for requests that no browser sends. */
export type Refusal = {
  code: 400 | 403 | 502;
  why: string;
  error?: NetError;
  /** The requested host, when it or its address is refused, and the reason for all its ports. */
  denied?: { host: string; why: string };
};

/** Whether a filter list contains that address. */
export type IsBlocked = (url: URL) => boolean;

export type EgressRules = Rules & {
  /** The session's own rule for hosts, as URL.hostname has them. */
  isAllowed?: (hostname: string) => boolean;
  /** The setting that opens private addresses; refusals name it. */
  allowSetting?: string;
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

/** Parses and checks an address: returns the target with its checked addresses, or a refusal. */
export async function resolveTarget(
  rules: EgressRules,
  text: string,
  scheme: 'http' | 'https' = 'http',
): Promise<Target | Refusal> {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' || url.username !== '' || url.password !== '') {
    return { code: 400, why: 'this proxy takes CONNECT host:port and http:// URLs' };
  }
  if (url.hostname.length > NAME_MAX_CHARS) {
    return { code: 502, why: 'a host name is too long', error: 'NAME_NOT_RESOLVED' };
  }
  if (rules.isAllowed?.(url.hostname) === false) return refuseHost(url.hostname);
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
  const { host: authority, hostname } = url;
  if (checked.kind === 'denied') return refuseAddress(rules, authority, hostname);
  if (CLOSED_PORTS.has(port)) return refusePort(authority, authority);
  const host = bare(url.hostname);
  const addresses = checked.kind === 'allowed' ? checked.addresses : [];
  if (!upstream) return { url, host, port, addresses };
  const proxy = await checkHost(upstream.host, upstream.isManaged ? operators : rules);
  if (proxy.kind === 'unknown') return proxyFailed('no address for the proxy');
  const proxyName = `the proxy ${upstream.host}`;
  if (proxy.kind === 'denied') return refuseAddress(rules, proxyName, hostname, proxyName);
  const isMail = CLOSED_PORTS.has(upstream.port) && !upstream.isManaged;
  if (isMail) return refusePort(proxyName, authority);
  const at = { host: bare(upstream.host), port: upstream.port, addresses: proxy.addresses };
  return { url, host, port, addresses, via: { upstream, at } };
}

/** The text has the requested name, never an address that it resolved to. */
function refuseAddress(
  { allowSetting }: EgressRules,
  what: string,
  host: string,
  closed = host,
): Refusal {
  const advice = allowSetting ? `: the operator can allow them with ${allowSetting}` : '';
  const reason =
    'is not reachable from here: ' +
    `private addresses and those of the service's machine are refused${advice}`;
  const denied = { host, why: `${closed} ${reason}` };
  return { code: 403, why: `${what} ${reason}`, error: 'ADDRESS_UNREACHABLE', denied };
}

function refuseHost(host: string): Refusal {
  const why = `${host} is not reachable from here: browserSettings.network refuses it`;
  return { code: 403, why, error: 'BLOCKED_BY_CLIENT', denied: { host, why } };
}

function refusePort(what: string, host: string): Refusal {
  const why = `${what} is not reachable from here: mail ports are closed`;
  return { code: 403, why, error: 'ADDRESS_UNREACHABLE', denied: { host, why } };
}

export function proxyFailed(why: string): Refusal {
  return { code: 502, why, error: 'PROXY_CONNECTION_FAILED' };
}

/** Connects, through its proxy when it has one. */
export async function dial(target: Target): Promise<Socket | Refusal> {
  const { via } = target;
  if (!via) return await connected(target);
  const socket = await connected(via.at);
  const tunnel = 'why' in socket ? undefined : await tunnelThrough(socket, via, target);
  return tunnel ?? proxyFailed(`${target.host} does not answer`);
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
  socket.once('connect', () => resolve(undefined));
  socket.on('error', (failure) => resolve(errorOf(failure)));
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
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  const lookup: LookupFunction = (_host, _options, answer) => answer(null, all);
  const autoSelectFamilyAttemptTimeout = ATTEMPT_TIMEOUT_MS;
  return { host, port, lookup, autoSelectFamily: true, autoSelectFamilyAttemptTimeout };
}

/** Without the brackets of an IPv6 literal. */
function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}
