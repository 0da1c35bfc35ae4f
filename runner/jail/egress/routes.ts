/**
 * Routes of connections: direct, or through a proxy. The first route whose pattern matches anywhere
 * in the host applies; without a match the connection is direct. The `proxies` of a session are
 * converted to routes. Pure. Source: proto/spec/sessions.md 1.
 */
import { type Upstream, upstreamOf } from '../../../proto/network/session-proxies.ts';

const NO_POOL = 'no managed proxy is configured (TABERN_PROXY): these connections are direct';
const NO_GEOLOCATION = 'the geolocation of a managed proxy is not supported and is ignored';

/** An expression, matched here when it is the operator's, in a thread when it is a tenant's. */
export type Pattern = { find(host: string): boolean | Promise<boolean> };

/** Compiles one session's patterns. Throws for a text that core would have refused. */
export type SessionPatterns = (text: string) => Pattern;

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

type Entry = Partial<
  Record<'type' | 'server' | 'username' | 'password' | 'domainPattern' | 'geolocation', unknown>
>;

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

/**
 * The routes of a session. `pool`: the operator's proxy, for managed entries; without one these are
 * a warning, never an error. Throws for an entry that core would have refused: ignoring it would
 * make connections direct.
 */
export function planOf(
  proxies: unknown,
  pool: Upstream | undefined,
  patternOf: SessionPatterns,
): { routes: Route[]; warnings: string[] } {
  const entries = proxies === true ? [{ type: 'browserbase' }] : proxies;
  const warnings = new Set<string>();
  const routes = (Array.isArray(entries) ? (entries as Entry[]) : []).map((entry) => {
    const { domainPattern } = entry;
    const pattern = typeof domainPattern === 'string' ? { pattern: patternOf(domainPattern) } : {};
    return { ...pattern, ...routeOf(entry, pool, warnings) };
  });
  return { routes, warnings: [...warnings] };
}

function routeOf(entry: Entry, pool: Upstream | undefined, warnings: Set<string>): Route {
  if (entry.type === 'none') return {};
  if (entry.type === 'external') return { via: ownProxy(entry) };
  if (pool === undefined) warnings.add(NO_POOL);
  else if (entry.geolocation !== undefined) warnings.add(NO_GEOLOCATION);
  return pool === undefined ? {} : { via: pool };
}

function ownProxy({ server, username, password }: Entry): Upstream {
  return upstreamOf(String(server), {
    ...(typeof username === 'string' ? { username } : {}),
    ...(typeof password === 'string' ? { password } : {}),
    isManaged: false,
  });
}
