/**
 * Records every 30 s that core runs, so that its downtime does not count against a failing
 * endpoint: five days of failures are five days with attempts. proto/spec/webhooks.md 7.
 */
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';

const PERIOD_MS = 30_000;
/** A shorter absence is a restart. Source: proto/spec/webhooks.md 7. */
const GAP_MIN_MS = 10 * 60_000;

type Options = { store: Pick<Store, 'beat'>; log: Log; now: () => number; periodMs?: number };

/** Stores a heartbeat at once and periodically; throws when the first one fails. */
export async function startHeartbeat(options: Options): Promise<AsyncDisposable> {
  const { store, log, now, periodMs = PERIOD_MS } = options;

  async function beat(): Promise<void> {
    const { gapMs } = await store.beat({ at: now(), gapMinMs: GAP_MIN_MS });
    if (gapMs > 0)
      log.info({ gapMs }, 'core was down: the time does not count against failing webhooks');
  }

  await beat();
  return periodically(periodMs, beat, { log, failure: 'storing the heartbeat failed' });
}
