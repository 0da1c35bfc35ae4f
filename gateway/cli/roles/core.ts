/** `tabern core`: runs core only, on its socket; and core as a part of `tabern serve`. */
import type { Env } from '../../../proto/common/env.ts';
import { type Log, openLog } from '../../../proto/common/log.ts';
import type { Metrics } from '../../../proto/common/metrics.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import { endTracing, startTracing } from '../../../proto/common/tracing.ts';
import { coreFailure, shutdownSignal } from '../../process/exit-codes.ts';
import { metricsOf, showMetrics } from '../../process/metrics.ts';
import { announce } from './announce.ts';

export type Core = Awaited<ReturnType<typeof import('../../../core/main.ts')['startCore']>>;

/** Runs until a shutdown signal. Throws Exit when it cannot start. */
export async function serveCore(env: Env): Promise<number> {
  const stopped = shutdownSignal();
  await startTracing();
  const listen = readSetting(env, 'METRICS_LISTEN');
  const metrics = await metricsOf(listen, 'core');
  const { core, log } = await openCore(env, metrics);
  await using _shown = await showMetrics(listen, metrics, { log, unready: core.problem });
  announce({ address: core.address, first: core.firstStart, hasConsole: false }, env);
  log.info({ end: await stopped }, 'ending');
  await core.close();
  await endTracing();
  return 0;
}

export async function openCore(env: Env, metrics: Metrics): Promise<{ core: Core; log: Log }> {
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
