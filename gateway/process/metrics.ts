/**
 * The gateway's metrics, and the metrics server of the process at TABERN_METRICS_LISTEN. Requests
 * are labelled with the route pattern of the contract, so labels contain no ids.
 */
import type { Context, Middleware } from 'koa';
import type { Place } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import {
  type Family,
  type Metrics,
  NO_METRICS,
  openMetrics,
  type Samples,
} from '../../proto/common/metrics.ts';
import { type Drained, openDrainRequests } from '../../proto/drain/requests.ts';
import { EXIT, Exit } from './exit-codes.ts';

const REQUESTS: Family = {
  name: 'tabern_http_requests_total',
  help: 'Requests by method, route and status.',
  labels: ['method', 'route', 'status'],
};
const SECONDS: Family = {
  name: 'tabern_http_request_seconds',
  help: 'From a request’s head until its answer is made; some wait on purpose.',
  labels: ['method', 'route'],
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
};
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH']);

/** Metrics of this process: NO_METRICS when they are not served. */
export async function metricsOf(listen: Place | undefined, role: string): Promise<Metrics> {
  return listen === undefined ? NO_METRICS : openMetrics(role);
}

type Shown = Drained & { log: Log; beside?: () => Promise<Samples> };

/** Serves the metrics until disposed, together with the output of `beside`. Throws Exit. */
export async function showMetrics(
  listen: Place | undefined,
  metrics: Metrics,
  { log, beside = async () => [], ...drained }: Shown,
): Promise<AsyncDisposable | undefined> {
  if (listen === undefined) return undefined;
  const { openMetricsServer } = await import('../../proto/common/metrics-server.ts');
  const read = () => Promise.all([metrics.samples(), beside()]);
  try {
    const requests = openDrainRequests(drained);
    return await openMetricsServer({ listen, read, log, beside: requests });
  } catch (error) {
    const { message } = error as Error;
    throw new Exit(EXIT.port, `TABERN_METRICS_LISTEN: ${message}`, error);
  }
}

/** Counts each request when it is answered. */
export function counted(metrics: Metrics): Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now();
    await next();
    const method = METHODS.has(ctx.method) ? ctx.method : 'other';
    const route = routeOf(ctx);
    metrics.add(REQUESTS, { method, route, status: String(ctx.status) });
    metrics.observe(SECONDS, (performance.now() - startedAt) / 1_000, { method, route });
  };
}

/** The route that the router matched; signed links are served before the router. */
function routeOf(ctx: Context): string {
  const matched: unknown = ctx['_matchedRoute'];
  return typeof matched === 'string' ? matched : 'none';
}
