/**
 * `tabern serve`: core and gateway in this process, the runner as a child. starting -> serving ->
 * draining -> ended. Draining, within 30 s: the gateway lets nothing new in while the runner ends
 * its work; core, which both need, goes last.
 */
import { type Env, place } from '../proto/env.ts';
import { type Log, openLog } from '../proto/log.ts';
import type { Metrics } from '../proto/metrics.ts';
import { endTracing, startTracing } from '../proto/trace.ts';
import { type GatewayConfig, gatewayConfig } from './config.ts';
import { askedToEnd, coreFailure, gatewayFailure } from './exits.ts';
import { startGateway } from './main.ts';
import { metricsOf, showMetrics } from './metrics.ts';
import { type HandOver, keepRunner, type RunnerChild } from './runner-child.ts';
import { gatewayTokenOf } from './token.ts';

type Core = Awaited<ReturnType<typeof import('../core/main.ts')['startCore']>>;
type FirstStart = NonNullable<Core['firstStart']>;

/**
 * Runs until asked to end, or until the runner refuses; gives the exit code. Throws Exit when it
 * cannot start.
 */
export async function serve(env: Env): Promise<number> {
  const asked = askedToEnd();
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
  announce(config.publicUrl ?? gateway.url, core);

  const end = await Promise.race([asked, runner.refused]);
  log.info({ end }, 'ending');
  await Promise.all([gateway.close(), runner.close()]);
  await core.close();
  await endTracing();
  return typeof end === 'number' ? end : 0;
}

/** `tabern core`: core alone, on its socket. */
export async function serveCore(env: Env): Promise<number> {
  const asked = askedToEnd();
  await startTracing();
  const listen = place(env, 'TABERN_METRICS_LISTEN');
  const metrics = await metricsOf(listen, 'core');
  const { core, log } = await openCore(env, metrics);
  await using _shown = await showMetrics(listen, metrics, { log });
  announce(core.address, core);
  log.info({ end: await asked }, 'ending');
  await core.close();
  await endTracing();
  return 0;
}

async function openCore(env: Env, metrics: Metrics): Promise<{ core: Core; log: Log }> {
  const { printable, readCoreConfig, startCore } = await import('../core/main.ts');
  const config = readCoreConfig(env);
  const log = openLog({ role: 'core', level: config.logLevel });
  log.info(printable(config), 'starting');
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
    // The next start is not the first: a key that is not shown now is lost.
    if (core.firstStart?.isPreset === false) process.stdout.write(facts(core.firstStart));
    await core.close();
    throw gatewayFailure(error, `${config.host}:${config.port}`);
  }
}

/** On stdout: at the first start all that a person needs to begin, later the address alone. */
function announce(address: string, { firstStart }: Core): void {
  if (firstStart === undefined) {
    process.stdout.write(`${address}\n`);
    return;
  }
  process.stdout.write(
    `tabern is ready.

  base URL    ${address}
${facts(firstStart)}
Try it:

  curl -X POST ${address}/v1/contexts -H "X-SVC-API-Key: ${shownKey(firstStart)}" \\
    -H "Content-Type: application/json" -d '{"name":"first"}'

`,
  );
}

function facts(first: FirstStart): string {
  const note = first.isPreset ? 'the one you set' : 'shown only now: keep it';
  return `  project id  ${first.projectId}\n  API key     ${shownKey(first)}   (${note})\n`;
}

/** A key that the operator chose is not printed. */
function shownKey({ isPreset, apiKey }: FirstStart): string {
  return isPreset ? '$TABERN_API_KEY' : apiKey;
}
