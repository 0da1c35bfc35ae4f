/**
 * Reads every stored file in the background and compares it with its row, so that damage is found
 * while a backup still has the file. Slow on purpose: other work does not wait for the disk.
 *   waiting (10 min) -> reading (4 MiB/s) -> resting (a week) -> reading ...
 */
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import type { Family, Metrics } from '../../proto/common/metrics.ts';
import { type Pause, pause as pauseReal } from '../../proto/common/pause.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';
import { DAMAGED } from './blob-files.ts';
import { checkedBytes, isDamage, type Stored } from './checked-bytes.ts';

/** In milliseconds, after the start, which has other work. Ours. */
export const FIRST_MS = 600_000;
/** In milliseconds, between two passes. Ours: a weekly backup still has a damaged file. */
export const REST_MS = 7 * 86_400_000;
/** In bytes per second. Ours: 2 % of a slow disk, 350 GB per day. */
const RATE_BYTES = 4 << 20;
const CHUNK_BYTES = 1 << 20;
/** Rows per operation. */
const BATCH = 100;

export const DAMAGED_FILES: Family = {
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

/** Reads until disposed. */
export function startScrub(options: Options): AsyncDisposable {
  const { log, pause = pauseReal } = options;
  const damaged = new Set<string>();
  const run = (signal: AbortSignal) => pass({ ...options, pause, damaged, signal });
  const failure = 'checking stored files failed';
  return periodically(REST_MS, run, { log, failure, firstMs: FIRST_MS, pause });
}

type Pass = Required<Options> & { damaged: Set<string>; signal: AbortSignal };

async function pass(options: Pass): Promise<void> {
  const { store, damaged, metrics, signal } = options;
  const removed = new Set(damaged);
  let blobs: Stored[] = [];
  do {
    blobs = await store.listBlobs({ after: blobs.at(-1)?.id ?? '', max: BATCH });
    for (const blob of blobs) {
      if (signal.aborted) return;
      removed.delete(blob.id);
      if (await isWhole(blob, options)) damaged.delete(blob.id);
      else damaged.add(blob.id);
      metrics.set(DAMAGED_FILES, damaged.size);
    }
  } while (blobs.length === BATCH);
  for (const id of removed) damaged.delete(id);
  metrics.set(DAMAGED_FILES, damaged.size);
}

/** True also when the file was removed meanwhile, or the pass was aborted. */
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
