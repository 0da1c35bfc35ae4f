/**
 * The runner's metrics: off unless TABERN_METRICS_LISTEN is set. Under `tabern serve` the parent
 * process requests and serves them; a stand-alone runner serves them itself.
 */
import type { Place } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import { type Family, type Metrics, NO_METRICS, openMetrics } from '../../proto/common/metrics.ts';
import { isMetricsAsked, type MetricsTold } from '../../proto/common/runner-ipc.ts';
import { openDrainRequests } from '../../proto/drain/requests.ts';
import type { RunnerEnd } from './runner-end.ts';

const BROWSERS: Family = {
  name: 'tabern_browsers',
  help: 'Chromes that are up: with a session, or waiting for one.',
  labels: ['state'],
};

export function watchPool(
  metrics: Metrics,
  pool: { counts(): { taken: number; up: number } },
): void {
  metrics.atReading(() => {
    const { taken, up } = pool.counts();
    metrics.set(BROWSERS, taken, { state: 'taken' });
    metrics.set(BROWSERS, Math.max(0, up - taken), { state: 'spare' });
  });
}

export async function runnerMetrics(
  listen: Place | undefined,
  { log, end, closing }: { log: Log; end: RunnerEnd; closing: AsyncDisposableStack },
): Promise<Metrics> {
  if (listen === undefined) return NO_METRICS;
  const metrics = await openMetrics('runner');
  if (process.send === undefined) {
    const { openMetricsServer } = await import('../../proto/common/metrics-server.ts');
    const read = async () => [await metrics.samples()];
    const beside = openDrainRequests({ end, unready: end.unready });
    closing.use(await openMetricsServer({ listen, read, log, beside }));
    return metrics;
  }
  process.on('message', (message: unknown) => {
    if (!isMetricsAsked(message)) return;
    metrics.samples().then(
      (samples) => {
        const answer: MetricsTold = { type: 'metrics', samples };
        if (process.connected) process.send?.(answer);
      },
      (error: unknown) => log.error({ err: error }, 'reading the metrics failed'),
    );
  });
  return metrics;
}
