/**
 * Probes without an API key. GET /healthz: 200 {"status":"ok"} when core answers, 503 before that
 * and while draining. GET /readyz: 200 when the service can accept new work.
 */
import type { RouterMiddleware } from '@koa/router';
import type { Log } from '../../proto/common/log.ts';
import type { CheckHealthResponse } from '../../proto/gen/tabern/v1/health.pb.ts';
import { asFault, Fault } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { State } from '../http/auth.ts';
import { answers, json, keyless } from './openapi-parts.ts';

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

/** A sentence for the operator, without a full stop. */
export type CoreProblem = (error: unknown) => string | undefined;

/** A slower core is not ready. Ours. */
const READY_TIMEOUT_MS = 2_000;
/** In milliseconds: an answer is cached for this long. Ours. */
const KEPT_MS = 1_000;

export function ready({
  clients,
  gatewayToken,
  unready,
  log,
  coreProblem = () => undefined,
}: {
  clients: Pick<Clients, 'health'>;
  gatewayToken: string;
  unready: AbortSignal;
  log: Log;
  /** Why core cannot be reached, where that is known. */
  coreProblem?: CoreProblem | undefined;
}): RouterMiddleware<State> {
  const options = {
    metadata: { authorization: `Bearer ${gatewayToken}` },
    timeoutMs: READY_TIMEOUT_MS,
  };
  let latest: { at: number; answer: Promise<CheckHealthResponse> } | undefined;
  let logged: string | undefined;
  const changed = (problem: string | undefined, error?: unknown): void => {
    if (problem === logged) return;
    logged = problem;
    if (problem === undefined) log.info('core answers again');
    else log.warn({ err: error }, problem);
  };

  return async (ctx) => {
    if (unready.aborted) throw new Fault('DRAINING', 'Not ready: the service drains.');
    const at = performance.now();
    if (latest === undefined || at - latest.at >= KEPT_MS) {
      latest = { at, answer: clients.health.checkHealth({}, options) };
    }
    const { answer } = latest;
    const { checks } = await answer.catch((error: unknown) => {
      const problem = coreProblem(error) ?? 'core does not answer';
      if (latest?.answer === answer) changed(problem, error);
      throw new Fault('CORE_UNAVAILABLE', `Not ready: ${problem}.`, {}, error);
    });
    if (latest.answer === answer) changed(undefined);
    const faults = checks.map(({ fault }) => fault).filter((fault) => fault !== '');
    if (faults.length > 0) {
      throw new Fault('CORE_UNAVAILABLE', `Not ready: ${faults.join(' ')}`);
    }
    const shown = checks.map(({ name, warning }) => [name, warning || 'ok']);
    const isDegraded = checks.some(({ warning }) => warning !== '');
    ctx.body = { status: isDegraded ? 'degraded' : 'ready', checks: Object.fromEntries(shown) };
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
    status: {
      enum: ['ready', 'degraded'],
      description: '`degraded`: new work is accepted, and a check has a warning.',
    },
    checks: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'By component: `ok`, or a warning for the operator.',
    },
  },
};
const READY_SUMMARY =
  'Answers 200 when new work can be accepted: free disk space, a runner and a browser.';

/** The OpenAPI descriptions of both probes. */
export const HEALTH_PATHS = {
  '/healthz': keyless('health', 'Answers 200 when the service is ready.', {
    responses: answers('Ready.', json(HEALTHY)),
  }),
  '/readyz': keyless('ready', READY_SUMMARY, { responses: answers('Ready.', json(READY)) }),
};
