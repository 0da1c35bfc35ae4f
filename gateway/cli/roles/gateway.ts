/**
 * `tabern gateway`: runs the gateway only. It calls core over gRPC. It drains for TABERN_DRAIN_S:
 * it is not ready and serves, until load balancers had time to see that and no WebSocket connection
 * passes through it.
 */
import type { Env } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { pause } from '../../../proto/common/pause.ts';
import { endTracing, startTracing } from '../../../proto/common/tracing.ts';
import { aborted } from '../../../proto/drain/end.ts';
import { coreProblem } from '../../../proto/rpc/core-problem.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { remoteClients } from '../../../proto/rpc/services.ts';
import { ignoreHangup } from '../../../proto/tls/reload.ts';
import { gatewayConfig, gatewayTokenOf } from '../../config.ts';
import { startGateway } from '../../main.ts';
import { gatewayFailure, openEnd } from '../../process/exit-codes.ts';
import { metricsOf, showMetrics } from '../../process/metrics.ts';

/** In milliseconds: a core that starts at the same time may take seconds. Ours. */
const FIRST_CALL_MS = 10_000;

/**
 * In milliseconds: load balancers ask for GET /readyz every 2 to 3 s, and believe its third 503.
 * Those of Kubernetes see the end of a pod itself. Ours.
 */
const LEAVE_MS = 10_000;

/** Runs until a shutdown signal. Throws Exit or ConfigError when it cannot start. */
export async function serveGateway(env: Env): Promise<number> {
  const config = gatewayConfig(env);
  const log = openLog({ role: 'gateway', level: config.logLevel });
  const end = openEnd(config.drainS, log);
  await startTracing();
  const gatewayToken = gatewayTokenOf(config);
  if (config.coreTls) ignoreHangup(log);
  using channel = new Channel(config.core, config.coreTls);
  const metrics = await metricsOf(config.metricsListen, 'gateway');
  const clients = remoteClients(channel);
  const link = { ...config, tokenSetting: 'TABERN_GATEWAY_TOKEN' };
  const problemOf = (error: unknown) => coreProblem(error, link);
  const parts = { clients, gatewayToken, log, metrics, coreProblem: problemOf };
  const gateway = await startGateway(config, parts).catch((error) => {
    throw gatewayFailure(error, `${config.host}:${config.port}`);
  });
  await using _shown = await showMetrics(config.metricsListen, metrics, { log, end });
  const metadata = { authorization: `Bearer ${gatewayToken}` };
  clients.health.checkHealth({}, { metadata, timeoutMs: FIRST_CALL_MS }).catch((error: unknown) => {
    log.warn({ core: config.core }, problemOf(error) ?? String(error));
  });
  process.stdout.write(`${config.publicUrl ?? gateway.url}\n`);
  await aborted(end.draining);
  gateway.refuseReadiness();
  const left = Promise.all([gateway.idle(), pause(LEAVE_MS, end.ending)]);
  await Promise.race([left, aborted(end.ending)]);
  await gateway.close();
  await endTracing();
  return 0;
}
