/** Parses the proxy and the bypass rules of a browser context into a route. Pure. */
import { type BlockList, isIP } from 'node:net';
import { cidrList } from '../../../proto/network/public-addresses.ts';
import { upstreamOf } from '../../../proto/network/session-proxies.ts';
import type { Route } from '../../jail/egress/routes.ts';

const BYPASS_MAX_CHARS = 8_192;
const NAMES_HOSTS = 'proxyBypassList names hosts: a.test, *.a.test, [::1], 10.0.0.0/8';

/**
 * Undefined: the session's own route. Throws an error for the client, without the proxy's password.
 */
export function routeOf(server: string, bypass: string): Route | undefined {
  if (/^direct:\/\/\/?$/i.test(server.trim())) return undefined;
  if (/[,;=\s]/.test(server.trim())) throw new TypeError('one proxy can be named, for all schemes');
  const via = upstreamOf(server.trim(), { isManaged: false });
  const isBypassed = bypassOf(bypass);
  return { via, pattern: { find: (host) => !isBypassed(host) } };
}

/** Chrome bypasses the proxy for these, unless the rules contain `<-loopback>`. */
const LOOPBACK = cidrList(['127.0.0.0/8', '::1/128', '169.254.0.0/16', 'fe80::/10']);

/** `[::1]` for an IPv6 address, or a CIDR block. */
const ADDRESSES = /^\[[\da-f:.]+\]$|^[\da-f:.]+\/\d{1,3}$/;

/**
 * Whether the rules match a host: `a.test`, `*.a.test`, `.a.test`, `10.0.0.1`, `[::1]`,
 * `10.0.0.0/8`, `<local>`. All addresses are one list and all names one set: a context may have a
 * thousand rules, and a session five hundred contexts.
 */
function bypassOf(text: string): (host: string) => boolean {
  if (text.length > BYPASS_MAX_CHARS) {
    throw new TypeError(`proxyBypassList has at most ${BYPASS_MAX_CHARS} characters`);
  }
  const rules = text
    .toLowerCase()
    .split(/[,;\s]+/)
    .filter(Boolean);
  const { addresses = [], ends = [], names = [] } = Object.groupBy(rules, kindOf);
  const blocks = blocksOf(addresses.map((rule) => rule.replace(/^\[(.*)\]$/, '$1')));
  const suffixes = ends.map((rule) => rule.replace('*', ''));
  const hosts = new Set(names);
  return (host) =>
    hosts.has('*') ||
    hosts.has(host) ||
    (hosts.has('<local>') && !/[.:]/.test(host)) ||
    suffixes.some((end) => host.endsWith(end)) ||
    isWithin(blocks, host) ||
    (!hosts.has('<-loopback>') && isLoopback(host));
}

function kindOf(rule: string): 'addresses' | 'ends' | 'names' {
  if (ADDRESSES.test(rule)) return 'addresses';
  if (['*', '<local>', '<-loopback>'].includes(rule)) return 'names';
  if (!/^[\w.*-]+$/.test(rule)) throw new TypeError(NAMES_HOSTS);
  if (/^\*?\.[^*]+$/.test(rule)) return 'ends';
  if (!rule.includes('*')) return 'names';
  throw new TypeError('proxyBypassList takes a * before a dot alone, or by itself');
}

function blocksOf(addresses: readonly string[]): BlockList {
  try {
    return cidrList(addresses);
  } catch {
    throw new TypeError(NAMES_HOSTS);
  }
}

function isWithin(blocks: BlockList, host: string): boolean {
  return isIP(host) !== 0 && blocks.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
}

function isLoopback(host: string): boolean {
  return isWithin(LOOPBACK, host) || /(^|\.)localhost\.?$/.test(host);
}
