/**
 * GET /readyz: 200 when this installation can do work now: core and its database answer, the disk
 * has room, a runner is there, and its newest Chrome started. 503 with what is wrong else. What
 * works, but slowly or by another clock, is `degraded` and 200 all the same: to send nobody here
 * would help nobody. Looked at once a second at most, whoever asks.
 */
import type { RouterMiddleware } from '@koa/router';
import type { HealthCheck } from '../../proto/gen/tabern/v1/health.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { State } from '../http/auth.ts';

/** A core that takes longer is not ready. Ours. */
const CORE_TIMEOUT_MS = 2_000;
/** In milliseconds: an answer serves all who ask within this. Ours. */
const KEPT_MS = 1_000;

export function ready(options: {
  clients: Pick<Clients, 'health'>;
  gatewayToken: string;
}): RouterMiddleware<State> {
  const metadata = { authorization: `Bearer ${options.gatewayToken}` };
  let looked: { at: number; checks: Promise<readonly HealthCheck[]> } | undefined;

  async function look(): Promise<readonly HealthCheck[]> {
    const { health } = options.clients;
    return (await health.checkHealth({}, { metadata, timeoutMs: CORE_TIMEOUT_MS })).checks;
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
