/**
 * Monitors starts of Chrome. The state of the newest start is reported to core with each renewal,
 * which GET /readyz and the console's overview show, and as metrics. While starts fail, a start is
 * tried every 30 s, because core leases no work to such a runner that would show its recovery.
 */
import type { Log } from '../../proto/common/log.ts';
import { type Family, type Metrics, NO_METRICS } from '../../proto/common/metrics.ts';
import { metered } from '../browser/cdp/latency-metrics.ts';
import type { Chrome } from '../browser/launch.ts';
import type { TakeOptions } from '../browser/pool.ts';

/** In milliseconds. Ours. */
const RETRY_MS = 30_000;

/** Of what Chrome says of itself. Ours. */
const PRODUCT_MAX_CHARS = 128;
/** Of an error, which has the output of Chrome. Ours. */
const FAILURE_MAX_CHARS = 300;

const LAUNCHES: Family = {
  name: 'tabern_browser_launches_total',
  help: 'Starts of Chrome by outcome.',
  labels: ['outcome'],
};
const SECONDS: Family = {
  name: 'tabern_browser_launch_seconds',
  help: 'How long a start of Chrome took that worked.',
  buckets: [0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30],
};

type Launch = (options: TakeOptions) => Promise<Chrome>;

export type Launches = Disposable & {
  launch: Launch;
  /**
   * The error of the newest plain start, if it failed: one line. A start with a profile may fail by
   * its profile.
   */
  readonly failure: string | undefined;
  /** The newest start that worked; undefined before the first. `at` is monotonic. */
  readonly newest: { product: string; at: number } | undefined;
};

export function watchLaunches(options: {
  launch: Launch;
  log: Log;
  metrics?: Metrics;
  retryMs?: number;
  /** A plain start failed. */
  onFailure?: () => void;
}): Launches {
  const { log, metrics = NO_METRICS, retryMs = RETRY_MS, onFailure } = options;
  let failure: string | undefined;
  let newest: Launches['newest'];
  let retry: NodeJS.Timeout | undefined;
  let isOver = false;

  const tryAgain = async (): Promise<void> => {
    try {
      await (await launch({})).close();
      log.info('Chrome starts again');
    } catch (error) {
      log.warn({ error: String(error) }, 'Chrome does not start');
    }
  };
  const note = (error: unknown): void => {
    clearTimeout(retry);
    failure = error === undefined ? undefined : lineOf(error);
    const isFailing = failure !== undefined;
    if (isFailing) onFailure?.();
    if (isFailing && !isOver) retry = setTimeout(() => void tryAgain(), retryMs).unref();
  };
  const launch: Launch = async (wanted) => {
    const startedAt = performance.now();
    try {
      const chrome = await options.launch(wanted);
      note(undefined);
      const at = performance.now();
      newest = { product: newest?.product ?? '', at };
      // not awaited: the session need not wait for it; rejects when this Chrome has ended
      productOf(chrome)
        .then((product) => (newest = { product, at }))
        .catch(() => undefined);
      metrics.add(LAUNCHES, { outcome: 'ok' });
      metrics.observe(SECONDS, (performance.now() - startedAt) / 1_000);
      return metrics === NO_METRICS ? chrome : { ...chrome, pipe: metered(chrome.pipe, metrics) };
    } catch (error) {
      metrics.add(LAUNCHES, { outcome: 'failed' });
      if (isLikeAnyOther(wanted)) note(error);
      throw error;
    }
  };
  return {
    launch,
    get failure() {
      return failure;
    },
    get newest() {
      return newest;
    },
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(retry);
    },
  };
}

function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, ' ').slice(0, FAILURE_MAX_CHARS);
}

async function productOf({ pipe }: Chrome): Promise<string> {
  const { product } = await pipe.call('Browser.getVersion');
  return String(product).slice(0, PRODUCT_MAX_CHARS);
}

function isLikeAnyOther({ engine: _, ...own }: TakeOptions): boolean {
  return Object.values(own).every((value) => value === undefined);
}
