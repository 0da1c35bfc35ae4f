/**
 * Removes unreferenced blobs: of builds that were refused, failed or never requested, replaced
 * content of contexts that a session was still reading, and files whose row was never written. All
 * must be an hour old, because younger ones may still be referenced. A row is removed before its
 * file, so that every row has a file.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';
import { ASIDE, type BlobFiles } from './blob-files.ts';

const PERIOD_MS = 600_000;
/** Ours: an upload is referenced within 2 min, a bundle when its build of 10 min ends. */
const UNUSED_AGE_MS = 3_600_000;
/** Rows per operation: other operations commit in between. */
const BATCH = 100;
/** Names of files per operation. */
const NAMES_BATCH = 500;

type Options = {
  store: Pick<Store, 'removeUnusedBlobs' | 'knownBlobs'>;
  files: BlobFiles;
  folder: string;
  log: Log;
  now: () => number;
  /** The machine's time, like the times of files. */
  wall?: () => number;
  /** While true, nothing is removed: the clock jumped far forward. */
  isHeld: () => boolean;
  periodMs?: number;
};

/** Sweeps at once and periodically; throws when the first sweep fails. */
export async function startBlobSweep(options: Options): Promise<AsyncDisposable> {
  const { log, periodMs = PERIOD_MS } = options;
  await sweepBlobs(options);
  return periodically(periodMs, () => sweepBlobs(options), {
    log,
    failure: 'sweeping unreferenced blobs failed',
  });
}

async function sweepBlobs(options: Options): Promise<void> {
  const { store, files, folder, log, now, wall = Date.now, isHeld } = options;
  if (isHeld()) return;
  const at = now();
  let unused = 0;
  let ids: string[];
  do {
    ids = await store.removeUnusedBlobs({ before: at - UNUSED_AGE_MS, max: BATCH });
    await files.remove(...ids);
    unused += ids.length;
  } while (ids.length === BATCH);
  const orphans = await sweepFiles({ store, files, folder, wall });
  if (unused + orphans > 0) log.info({ unused, orphans }, 'removed unreferenced files');
}

/**
 * Removes old files without a row; returns their number. Files in progress belong to their writer;
 * those of a killed writer are removed at the next start.
 */
export async function sweepFiles(options: {
  store: Pick<Store, 'knownBlobs'>;
  files: Pick<BlobFiles, 'remove'>;
  folder: string;
  wall: () => number;
}): Promise<number> {
  const { store, files, folder, wall } = options;
  const names = (await readdir(folder)).filter((name) => !name.endsWith(ASIDE));
  let removed = 0;
  for (let from = 0; from < names.length; from += NAMES_BATCH) {
    const batch = names.slice(from, from + NAMES_BATCH);
    const rows = new Set(await store.knownBlobs(batch));
    for (const name of batch.filter((one) => !rows.has(one))) {
      const { mtimeMs } = await stat(join(folder, name));
      if (wall() - mtimeMs < UNUSED_AGE_MS) continue;
      await files.remove(name);
      removed += 1;
    }
  }
  return removed;
}
