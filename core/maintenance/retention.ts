/**
 * Throws away what is too old, and what is too much: events of days ago with their deliveries,
 * and the oldest of what waits for a webhook that takes less than it gets. Once a minute, few rows
 * at a time. proto/spec/webhooks.md 9.
 */
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';

/** In milliseconds. Ours: a backlog may pass its limit by what comes in a minute. */
const PERIOD_MS = 60_000;
/** In milliseconds. Source: proto/spec/webhooks.md 9. */
const EVENTS_KEPT_MS = 30 * 86_400_000;
/** Rows in one operation: others commit in between. Source: proto/spec/webhooks.md 9. */
const BATCH = 500;
/** Deliveries of one webhook that wait. Source: proto/spec/webhooks.md 9. */
const PENDING_MAX = 100_000;

/** Cleans what belongs to a part of core; stops in between when the signal aborts. */
export type Cleaner = (signal: AbortSignal) => Promise<void>;

type Options = {
  store: Pick<Store, 'purgeEvents' | 'backlogs' | 'skipBacklog'>;
  log: Log;
  now: () => number;
};

/** Cleans once a minute until it is disposed of; while `isHeld`, nothing is too old. */
export function startJanitor(
  options: Options & { isHeld: () => boolean; cleaners: readonly Cleaner[] },
): AsyncDisposable {
  const { isHeld, cleaners, log } = options;
  const backlogs: Cleaner = (aborted) => skipBacklogs(options, aborted);

  async function run(signal: AbortSignal): Promise<void> {
    for (const cleaner of [backlogs, ...cleaners]) {
      if (signal.aborted) return;
      if (cleaner !== backlogs && isHeld()) continue;
      await cleaner(signal).catch((error: unknown) => {
        log.error({ err: error }, 'cleaning failed');
      });
    }
  }

  return periodically(PERIOD_MS, run, { log, failure: 'cleaning failed' });
}

/** `keptMs`: how long events are kept, with their deliveries and attempts. */
export function eventCleaner(options: Options & { keptMs?: number }): Cleaner {
  const { store, log, now, keptMs = EVENTS_KEPT_MS } = options;
  return async (signal) => {
    const purged = await repeat(signal, () => {
      const at = now();
      return store.purgeEvents({ before: at - keptMs, at, max: BATCH });
    });
    if (purged > 0) log.info({ rows: purged }, 'old events and deliveries were removed');
  };
}

/** Skips once what is too much, until nothing is or the signal aborts. */
export async function skipBacklogs(
  options: Options & { pendingMax?: number },
  signal: AbortSignal,
): Promise<void> {
  const { store, log, now, pendingMax = PENDING_MAX } = options;
  for (const webhookId of await store.backlogs(pendingMax)) {
    const skipped = await repeat(signal, () =>
      store.skipBacklog({ webhookId, pendingMax, max: BATCH, at: now() }),
    );
    log.warn({ webhookId, skipped, pendingMax }, 'a webhook takes less than it gets');
  }
}

/** Asks until less than a batch comes back; the sum. */
async function repeat(signal: AbortSignal, batch: () => Promise<number>): Promise<number> {
  let sum = 0;
  while (!signal.aborted) {
    const count = await batch();
    sum += count;
    if (count < BATCH) break;
  }
  return sum;
}
