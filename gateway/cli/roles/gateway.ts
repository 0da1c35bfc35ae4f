/** `tabern gateway`: runs the gateway only. It calls core over gRPC. */
import type { Env } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import { endTracing, startTracing } from '../../../proto/common/tracing.ts';
import { Channel } from '../../../proto/rpc/remote.ts';
import { remoteClients } from '../../../proto/rpc/services.ts';
import { gatewayConfig, gatewayTokenOf } from '../../config.ts';
import { startGateway } from '../../main.ts';
import { gatewayFailure, shutdownSignal } from '../../process/exit-codes.ts';
import { metricsOf, showMetrics } from '../../process/metrics.ts';

/** Runs until a shutdown signal. Throws Exit or ConfigError when it cannot start. */
export async function serveGateway(env: Env): Promise<number> {
  const stopped = shutdownSignal();
  await startTracing();
  const config = gatewayConfig(env);
  const gatewayToken = gatewayTokenOf(config);
  const log = openLog({ role: 'gateway', level: config.logLevel });
  using channel = new Channel(config.core);
  const metrics = await metricsOf(config.metricsListen, 'gateway');
  const parts = { clients: remoteClients(channel), gatewayToken, log, metrics };
  const gateway = await startGateway(config, parts).catch((error) => {
    throw gatewayFailure(error, `${config.host}:${config.port}`);
  });
  await using _shown = await showMetrics(config.metricsListen, metrics, { log });
  process.stdout.write(`${config.publicUrl ?? gateway.url}\n`);
  log.info({ end: await stopped }, 'ending');
  await gateway.close();
  await endTracing();
  return 0;
}
