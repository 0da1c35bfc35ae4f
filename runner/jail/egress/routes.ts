/**
 * Routes of connections: direct, or through a proxy. The first route whose pattern matches anywhere
 * in the host applies; without a match the connection is direct. Pure.
 */
import type { Upstream } from '../../../proto/network/session-proxies.ts';

/** An expression, matched here when it is the operator's, in a thread when it is a tenant's. */
export type Pattern = { find(host: string): boolean | Promise<boolean> };

/** Matching a tenant's pattern took too long: caused by the tenant, not an error of ours. */
export class PatternTimeout extends Error {}

export type Route = {
  /** Every host when absent. */
  pattern?: Pattern;
  /** For plain http only. */
  isPlain?: boolean;
  /** Absent: direct. */
  via?: Upstream;
};

/** The proxy for that host; undefined for a direct connection. */
export async function upstreamFor(
  host: string,
  routes: readonly Route[],
  scheme: 'http' | 'https' = 'https',
): Promise<Upstream | undefined> {
  for (const { pattern, isPlain = false, via } of routes) {
    const isOfScheme = !isPlain || scheme === 'http';
    if (isOfScheme && (pattern === undefined || (await pattern.find(host)))) return via;
  }
  return undefined;
}
