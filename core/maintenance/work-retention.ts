/**
 * Throws away what work has left: logs, invocations, builds, each after its own time. A version
 * that is a function's newest stays, and so does its build; an older one goes once its build is old
 * and no invocation that is kept has run it.
 */
import type { Log } from '../../proto/common/log.ts';
import { type IdRange, idAt, idRanges } from '../common/ids.ts';
import type { Store } from '../store/types.ts';
import type { Cleaner } from './retention.ts';

/** Rows in one operation: others commit in between. */
const BATCH = 500;

type Options = {
  store: Pick<Store, 'purgeLogs' | 'purgeInvocations' | 'purgeBuilds'>;
  log: Log;
  now: () => number;
  logsKeptMs: number;
  invocationsKeptMs: number;
  buildsKeptMs: number;
};

/** Logs of invocations and builds, then invocations, which free versions, then builds. */
export function workCleaner(options: Options): Cleaner {
  const { store, log, now, logsKeptMs, invocationsKeptMs, buildsKeptMs } = options;
  const ranges = (keptMs: number) => {
    const before = now() - keptMs;
    return idRanges({ before, now: now() }).map((range) => ({ ...range, before, max: BATCH }));
  };
  type Limit = IdRange & { before: number; max: number };

  async function builds(signal: AbortSignal, limit: Limit): Promise<number> {
    let sum = 0;
    let after: string | undefined = limit.after;
    while (after !== undefined && !signal.aborted) {
      const { removed, last }: Awaited<ReturnType<Store['purgeBuilds']>> = await store.purgeBuilds({
        ...limit,
        after,
      });
      sum += removed;
      after = last;
    }
    return sum;
  }

  return async (signal) => {
    const beforeId = idAt(now() - logsKeptMs);
    // lines that are ahead go with what has printed them
    const lines = await repeat(signal, () => store.purgeLogs({ beforeId, max: BATCH }));
    let [ended, built] = [0, 0];
    for (const limit of ranges(invocationsKeptMs)) {
      ended += await repeat(signal, () => store.purgeInvocations(limit));
    }
    for (const limit of ranges(buildsKeptMs)) built += await builds(signal, limit);
    if (lines + ended + built > 0) {
      log.info({ logRows: lines, invocationRows: ended, builds: built }, 'old work was removed');
    }
  };
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

/** Throws away keys that no longer count. */
export function idempotencyCleaner(options: {
  store: Pick<Store, 'purgeIdempotencyKeys'>;
  log: Log;
  now: () => number;
}): Cleaner {
  const { store, log, now } = options;
  return async (signal) => {
    let removed = 0;
    while (!signal.aborted) {
      const keys = await store.purgeIdempotencyKeys({ at: now(), max: BATCH });
      removed += keys;
      if (keys < BATCH) break;
    }
    if (removed > 0) log.debug({ keys: removed }, 'old idempotency keys were removed');
  };
}
