/**
 * Throws away files with time: downloads after TABERN_DOWNLOAD_DAYS, deleted extensions once no
 * open session is to load them. Rows go first, with their blobs' rows; files after.
 */
import type { Log } from '../../proto/common/log.ts';
import type { BlobFiles } from '../files/blob-files.ts';
import type { Store } from '../store/types.ts';
import type { Cleaner } from './retention.ts';

/** Rows in one operation: others commit in between. */
const BATCH = 500;

type Options = {
  store: Pick<Store, 'purgeDownloads' | 'purgeExtensions'>;
  files: Pick<BlobFiles, 'remove'>;
  log: Log;
  now: () => number;
  downloadsKeptMs: number;
};

export function fileCleaner(options: Options): Cleaner {
  const { store, files, log, now, downloadsKeptMs } = options;

  async function all(signal: AbortSignal, batch: () => Promise<string[]>): Promise<number> {
    let count = 0;
    while (!signal.aborted) {
      const blobIds = await batch();
      await Promise.all(blobIds.map((id) => files.remove(id)));
      count += blobIds.length;
      if (blobIds.length < BATCH) break;
    }
    return count;
  }

  return async (signal) => {
    const downloads = await all(signal, () => {
      const at = now();
      return store.purgeDownloads({ before: at - downloadsKeptMs, at, max: BATCH });
    });
    const extensions = await all(signal, () => store.purgeExtensions(BATCH));
    if (downloads + extensions > 0) log.info({ downloads, extensions }, 'old files were removed');
  };
}
