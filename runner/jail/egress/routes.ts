/**
 * Which way a connection leaves: straight, or through a proxy. The first route whose pattern is
 * found anywhere in the host decides; without one it leaves straight. Pure.
 */
import type { Upstream } from '../../../proto/network/session-proxies.ts';

/** An expression, matched here when it is the operator's, in a thread when it is a tenant's. */
export type Pattern = { find(host: string): boolean | Promise<boolean> };

/** A tenant's pattern was not matched in its time: the tenant's doing, and no error of ours. */
export class PatternTimeout extends Error {}

export type Route = {
  /** Every host when absent. */
  pattern?: Pattern;
  /** Of plain http alone. */
  isPlain?: boolean;
  /** Absent: straight. */
  via?: Upstream;
};

/** The proxy for that host; undefined for the straight way. */
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
