/**
 * Throws away sessions that ended long ago, with their metadata. Whatever is kept of one longer
 * keeps the session. What it used stays counted.
 */
import type { Log } from '../proto/log.ts';
import { idAt } from './ids.ts';
import type { Cleaner } from './janitor.ts';
import type { Store } from './store/types.ts';

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
    let after: string | undefined = '';
    while (after !== undefined && !signal.aborted) {
      const before = now() - keptMs;
      const limit = { before, beforeId: idAt(before), after, max: BATCH };
      const batch: Awaited<ReturnType<Store['purgeSessions']>> = await store.purgeSessions(limit);
      removed += batch.removed;
      after = batch.last;
    }
    if (removed > 0) log.info({ sessions: removed }, 'old sessions were removed');
  };
}
