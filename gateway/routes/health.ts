/**
 * GET /healthz: 200 {"status":"ok"} without a key once core answers, 503 until then and while
 * draining.
 */
import type { RouterMiddleware } from '@koa/router';
import { asFault, Fault } from '../../proto/errors.ts';
import type { Clients } from '../../proto/services.ts';
import type { State } from '../auth.ts';

/** A core that takes longer is not healthy. Ours. */
const CORE_TIMEOUT_MS = 1_000;

/**
 * Asks core something that needs a key, without one: a refusal is a sign of life that costs no
 * query.
 */
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

/** Its part of the OpenAPI description. */
export const HEALTH_PATHS = {
  '/healthz': {
    get: {
      operationId: 'health',
      summary: 'Answers 200 when the service is ready.',
      security: [],
      responses: { 200: { description: 'Ready.' }, 503: { description: 'Not ready.' } },
    },
  },
};
