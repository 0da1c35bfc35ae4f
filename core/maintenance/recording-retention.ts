/** Throws recordings away with time: rows first, together with their blobs', files after. */
import type { Log } from '../../proto/common/log.ts';
import type { BlobFiles } from '../files/blob-files.ts';
import type { Store } from '../store/types.ts';
import type { Cleaner } from './retention.ts';

/** Rows in one operation: others commit in between. */
const BATCH = 500;
/** A recording is kept from its session's end, and known by its beginning: the longest session. */
const SESSION_MAX_MS = 6 * 3_600_000;

export function recordingCleaner(options: {
  store: Pick<Store, 'purgeRecordings'>;
  files: Pick<BlobFiles, 'remove'>;
  log: Log;
  now: () => number;
  /** From its session's end. */
  keptMs: number;
}): Cleaner {
  const { store, files, log, now, keptMs } = options;
  return async (signal) => {
    let count = 0;
    while (!signal.aborted) {
      const at = now();
      const before = at - keptMs - SESSION_MAX_MS;
      const { blobIds, rows } = await store.purgeRecordings({ before, at, max: BATCH });
      await Promise.all(blobIds.map((id) => files.remove(id)));
      count += blobIds.length;
      if (rows < BATCH) break;
    }
    if (count > 0) log.info({ files: count }, 'old recordings were removed');
  };
}
