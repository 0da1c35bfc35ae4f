/**
 * `tabern serve`: core and gateway in this process, the runner as a child process. starting ->
 * serving -> draining -> ended. Draining takes at most 30 s: the gateway accepts no new requests
 * while the runner finishes its work; core stops last, because both need it.
 */
import type { Env } from '../../../proto/common/env.ts';
import { type Log, openLog } from '../../../proto/common/log.ts';
import type { Metrics } from '../../../proto/common/metrics.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import { endTracing, startTracing } from '../../../proto/common/tracing.ts';
import { type GatewayConfig, gatewayConfig, gatewayTokenOf } from '../../config.ts';
import { startGateway } from '../../main.ts';
import { coreFailure, gatewayFailure, shutdownSignal } from '../../process/exit-codes.ts';
import { metricsOf, showMetrics } from '../../process/metrics.ts';
import { type HandOver, keepRunner, type RunnerChild } from '../../process/runner-process.ts';
import { announce, ready } from './announce.ts';

type Core = Awaited<ReturnType<typeof import('../../../core/main.ts')['startCore']>>;

/** Runs until a shutdown signal or a refusal of the runner. Throws Exit when it cannot start. */
export async function serve(env: Env): Promise<number> {
  const stopped = shutdownSignal();
  await startTracing();
  const config = gatewayConfig(env);
  const log = openLog({ role: 'serve', level: config.logLevel });
  const metrics = await metricsOf(config.metricsListen, 'serve');
  let runner: RunnerChild | undefined;
  const beside = async () => (await runner?.samples()) ?? [];
  await using _shown = await showMetrics(config.metricsListen, metrics, { log, beside });
  const { core } = await openCore(env, metrics);
  const handOver: HandOver = (...connection) => runner?.handOver(...connection) ?? false;
  const gateway = await openGateway(config, { core, handOver, metrics });
  runner = keepRunner({ ...env, TABERN_DATA: config.dataDir, TABERN_CORE: core.address }, log);
  const ending = new AbortController();
  const { signal } = ending;
  const isReady = ready(core.clients, { gatewayToken: gatewayTokenOf(config), signal });
  const shown = isReady.then((is) => {
    if (!is) return;
    const address = config.publicUrl ?? gateway.url;
    announce({ address, first: core.firstStart, hasConsole: gateway.hasConsole }, env);
  });

  const end = await Promise.race([stopped, runner.refused]);
  log.info({ end }, 'ending');
  ending.abort();
  await Promise.all([shown, gateway.close(), runner.close()]);
  await core.close();
  await endTracing();
  return typeof end === 'number' ? end : 0;
}

/** `tabern core`: runs core only, on its socket. */
export async function serveCore(env: Env): Promise<number> {
  const stopped = shutdownSignal();
  await startTracing();
  const listen = readSetting(env, 'METRICS_LISTEN');
  const metrics = await metricsOf(listen, 'core');
  const { core, log } = await openCore(env, metrics);
  await using _shown = await showMetrics(listen, metrics, { log });
  announce({ address: core.address, first: core.firstStart, hasConsole: false }, env);
  log.info({ end: await stopped }, 'ending');
  await core.close();
  await endTracing();
  return 0;
}

async function openCore(env: Env, metrics: Metrics): Promise<{ core: Core; log: Log }> {
  const { printable, readCoreConfig, startCore } = await import('../../../core/main.ts');
  const config = readCoreConfig(env);
  const log = openLog({ role: 'core', level: config.logLevel });
  log.debug(printable(config), 'starting');
  try {
    return { core: await startCore(config, log, { metrics }), log };
  } catch (error) {
    throw coreFailure(error, config.dataDir);
  }
}

async function openGateway(
  config: GatewayConfig,
  { core, ...rest }: { core: Core; handOver: HandOver; metrics: Metrics },
) {
  try {
    const log = openLog({ role: 'gateway', level: config.logLevel });
    const gatewayToken = gatewayTokenOf(config);
    return await startGateway(config, { clients: core.clients, gatewayToken, log, ...rest });
  } catch (error) {
    await core.close();
    throw gatewayFailure(error, `${config.host}:${config.port}`);
  }
}
