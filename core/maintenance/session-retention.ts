/**
 * Throws away sessions that ended long ago, with their metadata. Whatever is kept of one longer
 * keeps the session. What it used stays counted.
 */
import type { Log } from '../../proto/common/log.ts';
import { idRanges } from '../common/ids.ts';
import type { Store } from '../store/types.ts';
import type { Cleaner } from './retention.ts';

/** Sessions in one operation: others commit in between. */
const BATCH = 500;

export function sessionCleaner(options: {
  store: Pick<Store, 'purgeSessions'>;
  log: Log;
  now: () => number;
  /** From its end. */
  keptMs: number;
}): Cleaner {
  const { store, log, now, keptMs } = options;
  return async (signal) => {
    let removed = 0;
    const before = now() - keptMs;
    for (const range of idRanges({ before, now: now() })) {
      let after: string | undefined = range.after;
      while (after !== undefined && !signal.aborted) {
        const limit = { ...range, before, after, max: BATCH };
        const batch: Awaited<ReturnType<Store['purgeSessions']>> = await store.purgeSessions(limit);
        removed += batch.removed;
        after = batch.last;
      }
    }
    if (removed > 0) log.info({ sessions: removed }, 'old sessions were removed');
  };
}

/** Throws away what is older than that. */
export function sessionLogCleaner(options: {
  store: Pick<Store, 'purgeSessionLogs'>;
  log: Log;
  now: () => number;
  keptMs: number;
}): Cleaner {
  const { store, log, now, keptMs } = options;
  return async (signal) => {
    let removed = 0;
    while (!signal.aborted) {
      const at = now();
      const chunks = await store.purgeSessionLogs({ before: at - keptMs, at, max: BATCH });
      removed += chunks;
      if (chunks < BATCH) break;
    }
    if (removed > 0) log.info({ chunks: removed }, 'old session logs were removed');
  };
}
