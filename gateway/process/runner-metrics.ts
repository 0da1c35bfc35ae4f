/** The metrics of the runner that is a child of this process, over its IPC channel. */
import type { ChildProcess } from 'node:child_process';
import type { Samples } from '../../proto/common/metrics.ts';
import { isMetricsTold, type MetricsAsked } from '../../proto/common/runner-ipc.ts';

/** In milliseconds: a runner that is busy or dying is left out of an answer. Ours. */
const PATIENCE_MS = 2_000;

/** Nothing while there is no runner. */
export async function samplesOf(child: ChildProcess | undefined): Promise<Samples> {
  if (!child?.connected) return [];
  const { promise, resolve } = Promise.withResolvers<Samples>();
  const hear = (message: unknown): void => {
    if (isMetricsTold(message)) resolve(message.samples);
  };
  const giveUp = (): void => resolve([]);
  const timer = setTimeout(giveUp, PATIENCE_MS);
  child.on('message', hear).once('exit', giveUp);
  try {
    const asked: MetricsAsked = { type: 'metrics' };
    child.send(asked, (error) => error && giveUp());
    return await promise;
  } finally {
    clearTimeout(timer);
    child.off('message', hear).off('exit', giveUp);
  }
}
