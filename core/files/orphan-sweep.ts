/**
 * Removes unreferenced blobs: of builds that were refused, failed or never requested, replaced
 * content of contexts that a session was still reading, and files whose row was never written. All
 * must be an hour old, because younger ones may still be referenced. A row is removed before its
 * file, so that every row has a file.
 */
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';
import type { Blobs } from './blobs.ts';

const PERIOD_MS = 600_000;
/** Ours: an upload is referenced within 2 min, a bundle when its build of 10 min ends. */
const UNUSED_AGE_MS = 3_600_000;
/** Rows per operation: other operations commit in between. */
const BATCH = 100;

type Options = {
  store: Pick<Store, 'removeUnusedBlobs' | 'knownBlobs'>;
  files: Pick<Blobs, 'remove' | 'list' | 'sweepUploads' | 'listPeriodMs'>;
  log: Log;
  now: () => number;
  /** The machine's time, like the times of files. */
  wall?: () => number;
  /** While true, nothing is removed: by a core that is not the leader, or while clock or bucket
   * cannot be trusted. A list that is due waits. */
  isHeld: () => boolean;
  periodMs?: number;
};

/** Sweeps at once and periodically; throws when the first sweep fails. */
export async function startBlobSweep(options: Options): Promise<AsyncDisposable> {
  const { log, files, periodMs = PERIOD_MS } = options;
  // a list that costs is not made at every start
  let sinceListMs = Math.max(0, files.listPeriodMs - periodMs);
  const run = async (): Promise<void> => {
    if (options.isHeld()) return;
    const isListed = sinceListMs >= files.listPeriodMs;
    await sweepBlobs(options, isListed);
    sinceListMs = (isListed ? 0 : sinceListMs) + periodMs;
  };
  await run();
  return periodically(periodMs, run, {
    log,
    failure: 'sweeping unreferenced blobs failed',
  });
}

async function sweepBlobs(options: Options, isListed: boolean): Promise<void> {
  const { store, files, log, now, wall = Date.now } = options;
  const at = now();
  let unused = 0;
  let ids: string[];
  do {
    ids = await store.removeUnusedBlobs({ before: at - UNUSED_AGE_MS, max: BATCH });
    await files.remove(...ids);
    unused += ids.length;
  } while (ids.length === BATCH);
  const orphans = isListed ? await sweepFiles({ store, files, wall }) : 0;
  const uploads = await files.sweepUploads();
  const removed = unused + orphans + uploads;
  if (removed > 0) log.info({ unused, orphans, uploads }, 'removed unreferenced files');
}

/** Removes old files without a row; returns their number. */
export async function sweepFiles(options: {
  store: Pick<Store, 'knownBlobs'>;
  files: Pick<Blobs, 'remove' | 'list'>;
  wall: () => number;
}): Promise<number> {
  const { store, files, wall } = options;
  let removed = 0;
  for await (const batch of files.list()) {
    const rows = new Set(await store.knownBlobs(batch.map(({ name }) => name)));
    for (const { name, ageMs } of batch) {
      if (rows.has(name)) continue;
      if ((await ageMs(wall())) < UNUSED_AGE_MS) continue;
      await files.remove(name);
      removed += 1;
    }
  }
  return removed;
}
