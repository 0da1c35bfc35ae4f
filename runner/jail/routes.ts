/**
 * Which way a connection leaves: straight, or through a proxy. The first route whose pattern is
 * found anywhere in the host decides; without one it leaves straight. Pure.
 */
import type { RE2JS } from 're2js';
import type { Upstream } from '../../proto/proxies.ts';

export type Route = {
  /** Every host when absent. */
  pattern?: RE2JS;
  /** Of plain http alone. */
  isPlain?: boolean;
  /** Absent: straight. */
  via?: Upstream;
};

/** The proxy for that host; undefined for the straight way. */
export function upstreamFor(
  host: string,
  routes: readonly Route[],
  scheme: 'http' | 'https' = 'https',
): Upstream | undefined {
  const route = routes.find(({ pattern, isPlain = false }) => {
    const isOfScheme = !isPlain || scheme === 'http';
    return isOfScheme && (pattern === undefined || pattern.matcher(host).find());
  });
  return route?.via;
}
