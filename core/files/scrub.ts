/**
 * Reads every stored file in the background and compares it with its row, so that one that rots is
 * found while a backup still has it. Slow on purpose: work never waits for it.
 *
 * waiting (10 min) -> reading (4 MiB/s) -> resting (a week) -> reading ...
 */
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import type { Family, Metrics } from '../../proto/common/metrics.ts';
import { type Pause, pause as pauseReal } from '../../proto/common/pause.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';
import { DAMAGED } from './blob-files.ts';
import { checkedBytes, isDamage, type Stored } from './checked-bytes.ts';

/** In milliseconds, after the start: a start has other work. Ours. */
const FIRST_MS = 600_000;
/** In milliseconds, between two passes. Ours: a weekly backup has what rots. */
const REST_MS = 7 * 86_400_000;
/** In bytes a second. Ours: 2 % of a slow disk, 350 GB a day. */
const RATE_BYTES = 4 << 20;
/** Read at once. */
const CHUNK_BYTES = 1 << 20;
/** Rows in one operation. */
const BATCH = 100;

const DAMAGED_FILES: Family = {
  name: 'tabern_blobs_damaged',
  help: 'Stored files that were damaged when they were last read in the background.',
};
const READ: Family = {
  name: 'tabern_blobs_scrubbed_bytes_total',
  help: 'Bytes of stored files that were read in the background and compared with their hash.',
};

type Options = {
  store: Pick<Store, 'listBlobs' | 'getBlob'>;
  folder: string;
  log: Log;
  metrics: Metrics;
  /** For tests. */
  pause?: Pause;
};

/** Reads until it is disposed of. */
export function startScrub(options: Options): AsyncDisposable {
  const { log, pause = pauseReal } = options;
  const damaged = new Set<string>();
  const run = (signal: AbortSignal) => pass({ ...options, pause, damaged, signal });
  const failure = 'stored files could not be checked';
  return periodically(REST_MS, run, { log, failure, firstMs: FIRST_MS, pause });
}

type Pass = Required<Options> & { damaged: Set<string>; signal: AbortSignal };

async function pass(options: Pass): Promise<void> {
  const { store, damaged, metrics, signal } = options;
  const seen = new Set<string>();
  let blobs: Stored[] = [];
  do {
    blobs = await store.listBlobs({ after: blobs.at(-1)?.id ?? '', max: BATCH });
    for (const blob of blobs) {
      if (signal.aborted) return;
      if (!(await isWhole(blob, options))) seen.add(blob.id);
      else damaged.delete(blob.id);
      metrics.set(DAMAGED_FILES, new Set([...damaged, ...seen]).size);
    }
  } while (blobs.length === BATCH);
  // what is damaged and was not met has been removed since
  damaged.clear();
  for (const id of seen) damaged.add(id);
  metrics.set(DAMAGED_FILES, damaged.size);
}

/** True also when it was removed meanwhile, or the end came first. */
async function isWhole(blob: Stored, options: Pass): Promise<boolean> {
  const { store, folder, log, metrics, pause, signal } = options;
  try {
    for await (const { length } of checkedBytes(join(folder, blob.id), blob, CHUNK_BYTES)) {
      if (signal.aborted) return true;
      metrics.add(READ, {}, length);
      await pause((length / RATE_BYTES) * 1_000, signal);
    }
    return true;
  } catch (error) {
    if (!isDamage(error)) throw error;
    if ((await store.getBlob(blob.id)) === undefined) return true;
    log.error({ err: error, blobId: blob.id, reason: 'DATA_CORRUPT' }, DAMAGED);
    return false;
  }
}
