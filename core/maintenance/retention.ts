/**
 * Retention: removes resources beyond their age. The table has what is removed and when; one loop
 * removes it once a minute, in batches, so that others commit in between. Rows are removed first,
 * with the rows of their blobs; files after. While the clock is held after a jump, nothing is
 * removed.
 */
import type { Log } from '../../proto/common/log.ts';
import { idRanges } from '../common/ids.ts';
import { periodically } from '../common/periodically.ts';
import type { CoreDeps } from '../services.ts';
import { skipBacklogs } from './backlogs.ts';
import { type KeptDays, type Retention, retentionTable } from './retention-table.ts';

/** In milliseconds. Ours: a backlog may exceed its limit by the arrivals of a minute. */
const PERIOD_MS = 60_000;
/** Rows in one operation. Source: proto/spec/webhooks.md 9. */
const BATCH = 500;

type Options = {
  log: Log;
  now: () => number;
  /** While true, nothing is removed for its age. */
  isHeld: () => boolean;
};

/** Runs once a minute until it is disposed of. */
export function startRetention(
  kept: KeptDays,
  deps: Options & Pick<CoreDeps, 'store' | 'files'>,
): AsyncDisposable {
  const { log } = deps;
  const table = retentionTable(kept, deps);
  const run = async (signal: AbortSignal): Promise<void> => {
    await skipBacklogs(deps, signal).catch((error: unknown) => {
      log.error({ err: error }, 'skipping backlogs failed');
    });
    await purgeOld(table, deps, signal);
  };
  return periodically(PERIOD_MS, run, { log, failure: 'retention failed' });
}

/** One pass over the table, in its order. A failure is logged, and the other rows continue. */
export async function purgeOld(
  table: readonly Retention[],
  { log, now, isHeld }: Options,
  signal: AbortSignal,
): Promise<void> {
  for (const retention of table) {
    if (signal.aborted || isHeld()) return;
    const { name, unit, level = 'info' } = retention;
    try {
      const removed = await purgeOne(retention, now(), signal);
      if (removed > 0) log[level]({ [unit]: removed }, `old ${name} were removed`);
    } catch (error) {
      log.error({ err: error }, `removing old ${name} failed`);
    }
  }
}

/** Removes all that is too old, unless the signal aborts; returns the number. */
async function purgeOne(
  { keptMs, isById, purge }: Retention,
  at: number,
  signal: AbortSignal,
): Promise<number> {
  const before = at - keptMs;
  const [old, ahead] = idRanges({ before, now: at });
  let removed = 0;
  for (const range of isById ? [old, ahead] : [old]) {
    let after: string | undefined = range.after;
    while (after !== undefined && !signal.aborted) {
      const batch = await purge({ ...range, after, before, at, max: BATCH });
      removed += batch.removed;
      after = batch.last;
    }
  }
  return removed;
}
