/** `tabern core`: runs core only, on its socket; and core as a part of `tabern serve`. */
import { AwayError, type Env } from '../../../proto/common/env.ts';
import { openLog } from '../../../proto/common/log.ts';
import type { Metrics } from '../../../proto/common/metrics.ts';
import { pause } from '../../../proto/common/pause.ts';
import { readSetting } from '../../../proto/common/settings/read.ts';
import { endTracing, startTracing } from '../../../proto/common/tracing.ts';
import { coreFailure, type Exit, shutdownSignal } from '../../process/exit-codes.ts';
import { metricsOf, showMetrics } from '../../process/metrics.ts';
import { announce } from './announce.ts';

/** Between attempts to open core. Ours. */
const AGAIN_MS = 1_000;
/** At the end of a sentence: a server that starts may answer with several. */
const CODE = / \(\w+\)$/;

export type Core = Awaited<ReturnType<typeof import('../../../core/main.ts')['startCore']>>;

/** Runs until a shutdown signal. Throws Exit when it cannot start. */
export async function serveCore(env: Env): Promise<number> {
  const ended = new AbortController();
  const stopped = shutdownSignal().finally(() => ended.abort());
  const { readCoreConfig } = await import('../../../core/main.ts');
  const { logLevel } = readCoreConfig(env); // a wrong setting is reported before a port is opened
  await startTracing();
  const listen = readSetting(env, 'METRICS_LISTEN');
  const metrics = await metricsOf(listen, 'core');
  const log = openLog({ role: 'core', level: logLevel });
  let unready: Core['problem'] = async () => 'Core starts.';
  await using _shown = await showMetrics(listen, metrics, { log, unready: () => unready() });
  const core = await untilOpen(() => openCore(env, metrics), {
    signal: ended.signal,
    onProblem(problem, cause) {
      log.error({ problem, err: cause }, 'core waits for its database');
      unready = async () => problem;
    },
  });
  if (core) {
    unready = core.problem;
    announce({ address: core.address, first: core.firstStart, hasConsole: false }, env);
    log.info({ end: await stopped }, 'ending');
    await core.close();
  }
  await endTracing();
  return 0;
}

/**
 * Tries again while the database does not answer, as a running core does: a supervisor would wait
 * longer and longer between starts. Calls `onProblem` when the sentence changes, whatever the code
 * at its end. Returns undefined when the signal aborts first.
 */
async function untilOpen(
  open: () => Promise<Core>,
  options: { signal: AbortSignal; onProblem: (problem: string, cause: unknown) => void },
): Promise<Core | undefined> {
  const { signal, onProblem } = options;
  for (let last = ''; !signal.aborted; await pause(AGAIN_MS, signal)) {
    try {
      return await open();
    } catch (error) {
      const { message, cause } = error as Exit;
      if (!(cause instanceof AwayError)) throw error;
      const words = message.replace(CODE, '');
      if (words !== last) onProblem(`${message}.`, cause.cause);
      last = words;
    }
  }
  return undefined;
}

export async function openCore(env: Env, metrics: Metrics): Promise<Core> {
  const { printable, readCoreConfig, startCore } = await import('../../../core/main.ts');
  const config = readCoreConfig(env);
  const log = openLog({ role: 'core', level: config.logLevel });
  log.debug(printable(config), 'starting');
  try {
    return await startCore(config, log, { metrics });
  } catch (error) {
    throw coreFailure(error, config.dataDir);
  }
}
