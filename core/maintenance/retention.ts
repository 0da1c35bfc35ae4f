/**
 * Retention: removes what is older than it is kept. The table says what goes and when, one loop
 * does it once a minute, in batches, so that others commit in between. Rows go first, with the rows
 * of their blobs; files after. While the clock is held after a jump, nothing is too old.
 */
import type { Log } from '../../proto/common/log.ts';
import { idRanges } from '../common/ids.ts';
import { periodically } from '../common/periodically.ts';
import type { CoreDeps } from '../services.ts';
import { skipBacklogs } from './backlogs.ts';
import { type KeptDays, type Retention, retentionTable } from './retention-table.ts';

/** In milliseconds. Ours: a backlog may pass its limit by what comes in a minute. */
const PERIOD_MS = 60_000;
/** Rows in one operation. Source: proto/spec/webhooks.md 9. */
const BATCH = 500;

type Options = {
  log: Log;
  now: () => number;
  /** While it says so, nothing is removed for its age. */
  isHeld: () => boolean;
};

/** Runs once a minute until it is disposed of. */
export function startRetention(
  kept: KeptDays,
  parts: Options & Pick<CoreDeps, 'store' | 'files'>,
): AsyncDisposable {
  const { log } = parts;
  const table = retentionTable(kept, parts);
  const run = async (signal: AbortSignal): Promise<void> => {
    await skipBacklogs(parts, signal).catch((error: unknown) => {
      log.error({ err: error }, 'skipping backlogs failed');
    });
    await purgeOld(table, parts, signal);
  };
  return periodically(PERIOD_MS, run, { log, failure: 'retention failed' });
}

/** One pass over the table, in its order. What fails is logged; the rest goes on. */
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

/** How many of it went: all that is too old, unless the signal aborts. */
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
