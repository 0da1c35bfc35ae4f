/**
 * Converts the `proxies` of a session into routes: each entry selects hosts by a pattern, and their
 * proxy; the first match wins. A managed proxy without a configured pool is a warning, never an
 * error: connections are direct then. Pure. Source: proto/spec/sessions.md 1.
 */
import { type Upstream, upstreamOf } from '../../../proto/network/session-proxies.ts';
import type { SessionPatterns } from './patterns.ts';
import type { Route } from './routes.ts';

export type ProxyPlan = { routes: Route[]; warnings: string[] };

const NO_POOL = 'no managed proxy is configured (TABERN_PROXY): these connections are direct';
const NO_GEOLOCATION = 'the geolocation of a managed proxy is not supported and is ignored';

type Entry = {
  type?: unknown;
  server?: unknown;
  username?: unknown;
  password?: unknown;
  domainPattern?: unknown;
  geolocation?: unknown;
};

/**
 * `pool`: the operator's proxy, for entries without a server. Throws for an entry that core would
 * have refused: ignoring it would make connections direct.
 */
export function planOf(
  proxies: unknown,
  pool: Upstream | undefined,
  patternOf: SessionPatterns,
): ProxyPlan {
  const entries = proxies === true ? [{ type: 'browserbase' }] : proxies;
  const plan: ProxyPlan = { routes: [], warnings: [] };
  if (!Array.isArray(entries)) return plan;
  const warnings = new Set<string>();
  for (const entry of entries as Entry[]) {
    const { domainPattern } = entry;
    const pattern = typeof domainPattern === 'string' ? { pattern: patternOf(domainPattern) } : {};
    plan.routes.push({ ...pattern, ...wayOf(entry, pool, warnings) });
  }
  return { ...plan, warnings: [...warnings] };
}

function wayOf(entry: Entry, pool: Upstream | undefined, warnings: Set<string>): Route {
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
