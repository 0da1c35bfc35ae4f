/**
 * The `proxies` of a session's creator as routes: each entry names hosts by a pattern and the way
 * they take; the first that matches wins. A managed proxy that this machine has not is a warning,
 * never an error: the session leaves straight then, and says so. Pure. Source:
 * proto/spec/sessions.md 1.
 */
import { type Upstream, upstreamOf } from '../../../proto/network/session-proxies.ts';
import type { SessionPatterns } from './patterns.ts';
import type { Route } from './routes.ts';

export type ProxyPlan = { routes: Route[]; warnings: string[] };

const NO_POOL =
  'no managed proxy is set up here (TABERN_PROXY): what should have taken one leaves straight';
const NO_GEOLOCATION = 'the geolocation of a managed proxy is not acted on';

type Entry = {
  type?: unknown;
  server?: unknown;
  username?: unknown;
  password?: unknown;
  domainPattern?: unknown;
  geolocation?: unknown;
};

/**
 * `pool`: the operator's proxy, for entries that name none of their own. Throws at what core has
 * not let through: to leave it out would be to leave straight.
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
