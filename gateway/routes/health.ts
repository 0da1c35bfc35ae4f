/**
 * GET /healthz: 200 {"status":"ok"} without a key when core answers; 503 before that and while
 * draining.
 */
import type { RouterMiddleware } from '@koa/router';
import type { HealthCheck } from '../../proto/gen/tabern/v1/health.pb.ts';
import { asFault, Fault } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { State } from '../http/auth.ts';
import { FAILURE } from './openapi-parts.ts';

/** A slower core is unhealthy. Ours. */
const CORE_TIMEOUT_MS = 1_000;

/** Calls core without a key: the refusal proves that core works and costs no query. */
export function health(clients: Clients): RouterMiddleware<State> {
  return async (ctx) => {
    try {
      await clients.projects.listProjects({}, { timeoutMs: CORE_TIMEOUT_MS });
    } catch (error) {
      if (asFault(error).row.http !== 401) {
        throw new Fault('CORE_UNAVAILABLE', 'The service is not ready.', {}, error);
      }
    }
    ctx.body = { status: 'ok' };
  };
}

const HEALTHY = {
  type: 'object',
  required: ['status'],
  additionalProperties: false,
  properties: { status: { const: 'ok' } },
};
const READY = {
  type: 'object',
  required: ['status', 'checks'],
  additionalProperties: false,
  properties: {
    status: { const: 'ready' },
    checks: { type: 'object', additionalProperties: { const: 'ok' } },
  },
};

/** The OpenAPI descriptions of both probes. */
export const HEALTH_PATHS = {
  '/healthz': {
    get: {
      operationId: 'health',
      summary: 'Answers 200 when the service is ready.',
      security: [],
      responses: {
        200: { description: 'Ready.', content: { 'application/json': { schema: HEALTHY } } },
        default: FAILURE,
      },
    },
  },
  '/readyz': {
    get: {
      operationId: 'ready',
      summary:
        'Answers 200 when new work can be accepted: free disk space, a runner and a browser.',
      security: [],
      responses: {
        200: { description: 'Ready.', content: { 'application/json': { schema: READY } } },
        default: FAILURE,
      },
    },
  },
};

/** A slower core is not ready. Ours. */
const READY_TIMEOUT_MS = 2_000;
/** In milliseconds: an answer is cached for this long. Ours. */
const KEPT_MS = 1_000;

export function ready(options: {
  clients: Pick<Clients, 'health'>;
  gatewayToken: string;
}): RouterMiddleware<State> {
  const metadata = { authorization: `Bearer ${options.gatewayToken}` };
  let looked: { at: number; checks: Promise<readonly HealthCheck[]> } | undefined;

  async function look(): Promise<readonly HealthCheck[]> {
    const { health } = options.clients;
    return (await health.checkHealth({}, { metadata, timeoutMs: READY_TIMEOUT_MS })).checks;
  }

  return async (ctx) => {
    const at = performance.now();
    if (looked === undefined || at - looked.at >= KEPT_MS) looked = { at, checks: look() };
    let checks: readonly HealthCheck[];
    try {
      checks = await looked.checks;
    } catch (error) {
      throw new Fault('CORE_UNAVAILABLE', 'Not ready: core does not answer.', {}, error);
    }
    const faults = checks.map(({ fault }) => fault).filter((fault) => fault !== '');
    if (faults.length > 0) {
      throw new Fault('CORE_UNAVAILABLE', `Not ready: ${faults.join(' ')}`);
    }
    const said = checks.map(({ name, warning }) => [name, warning || 'ok']);
    const isDegraded = checks.some(({ warning }) => warning !== '');
    ctx.body = { status: isDegraded ? 'degraded' : 'ready', checks: Object.fromEntries(said) };
  };
}
