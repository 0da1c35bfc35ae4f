/**
 * Skips the oldest pending deliveries of a webhook whose endpoint accepts fewer than arrive, so
 * that its backlog has a limit. proto/spec/webhooks.md 9.
 */
import type { Log } from '../../proto/common/log.ts';
import type { Store } from '../store/types.ts';

/** Rows in one operation; other operations commit in between. Source: proto/spec/webhooks.md 9. */
const BATCH = 500;
/** Pending deliveries of one webhook. Source: proto/spec/webhooks.md 9. */
const PENDING_MAX = 100_000;

/** Skips deliveries beyond the limit of each webhook, until the signal aborts. */
export async function skipBacklogs(
  options: {
    store: Pick<Store, 'backlogs' | 'skipBacklog'>;
    log: Log;
    now: () => number;
    pendingMax?: number;
  },
  signal: AbortSignal,
): Promise<void> {
  const { store, log, now, pendingMax = PENDING_MAX } = options;
  for (const webhookId of await store.backlogs(pendingMax)) {
    let skipped = 0;
    let rows = BATCH;
    while (rows === BATCH && !signal.aborted) {
      rows = await store.skipBacklog({ webhookId, pendingMax, max: BATCH, at: now() });
      skipped += rows;
    }
    log.warn(
      { webhookId, skipped, pendingMax },
      'the oldest deliveries of a webhook were skipped: its backlog exceeds the limit',
    );
  }
}
