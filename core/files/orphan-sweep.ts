/**
 * Removes what nobody names: blobs whose build was refused, failed or never asked for, content of
 * contexts that a session still read when it was replaced, and files whose row was never written.
 * All must be an hour old: until then somebody may be about to name them. A row goes before its
 * file, so that a row never lacks one.
 */
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';
import { type BlobFiles, sweepBlobFiles } from './blob-files.ts';

const PERIOD_MS = 600_000;
/** Ours: an upload is named within 2 min, a bundle when its build of 10 min ends. */
const UNUSED_AGE_MS = 3_600_000;
/** Rows in one operation: others commit in between. */
const BATCH = 100;

type Options = {
  store: Pick<Store, 'removeUnusedBlobs' | 'knownBlobs'>;
  files: BlobFiles;
  folder: string;
  log: Log;
  /** Core's time, and the machine's. */
  now: () => number;
  wall?: () => number;
  /** While it says so, nothing is old. */
  isHeld: () => boolean;
  periodMs?: number;
};

/** Sweeps now and on; throws when the first sweep fails. */
export async function startBlobSweep(options: Options): Promise<AsyncDisposable> {
  const { log, periodMs = PERIOD_MS } = options;
  await sweepBlobs(options);
  return periodically(periodMs, () => sweepBlobs(options), { log, failure: 'no sweep' });
}

async function sweepBlobs(options: Options): Promise<void> {
  const { store, files, folder, log, now, wall = Date.now, isHeld } = options;
  if (isHeld()) return;
  const at = now();
  let unused = 0;
  let ids: string[];
  do {
    ids = await store.removeUnusedBlobs({ before: at - UNUSED_AGE_MS, max: BATCH });
    for (const id of ids) await files.remove(id);
    unused += ids.length;
  } while (ids.length === BATCH);
  const orphans = await sweepBlobFiles(folder, {
    known: (names) => store.knownBlobs(names),
    remove: files.remove,
    now: wall(), // as the times of files
  });
  if (unused + orphans > 0) log.info({ unused, orphans }, 'removed files that nobody names');
}
