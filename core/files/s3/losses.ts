/**
 * Compares the rows of blobs with the objects of the bucket, once a week, by one core: a lost
 * object, or one of another size, is logged and counted. Bytes are not read: the bucket verifies
 * its own, and every read by a user is verified. Rows and objects are both in the order of their
 * ids.
 */
import type { Log } from '../../../proto/common/log.ts';
import type { Metrics } from '../../../proto/common/metrics.ts';
import type { Pause } from '../../../proto/common/pause.ts';
import { periodically } from '../../common/periodically.ts';
import type { Store } from '../../store/types.ts';
import { DAMAGED_FILES, FIRST_MS, REST_MS } from '../scrub.ts';
import { trying } from './attempts.ts';
import { type Bucket, LIST_MAX } from './bucket.ts';

type Options = {
  /** While true, another core compares, or the bucket cannot be used. */
  isHeld?: () => boolean;
  store: Pick<Store, 'listBlobs' | 'getBlob'>;
  bucket: Bucket;
  log: Log;
  metrics: Metrics;
  /** For tests. */
  pause?: Pause;
};

export function startLossCheck(options: Options): AsyncDisposable {
  const { log, pause, metrics, isHeld = () => false } = options;
  let sinceMs = REST_MS;
  const run = async (signal: AbortSignal): Promise<void> => {
    sinceMs += FIRST_MS;
    if (sinceMs < REST_MS || isHeld()) return;
    const lost = await countLost(options, signal);
    if (signal.aborted) return;
    sinceMs = 0;
    metrics.set(DAMAGED_FILES, lost);
  };
  const failure = 'comparing the bucket with the database failed: again in ten minutes';
  return periodically(FIRST_MS, run, { log, failure, pause });
}

/** Logs each lost object; returns their number. */
export async function countLost(options: Options, signal: AbortSignal): Promise<number> {
  const { store, bucket, log } = options;
  let after = '';
  let lost = 0;
  while (!signal.aborted) {
    const blobs = await store.listBlobs({ after, max: LIST_MAX });
    for (const id of await lostOf(bucket, { blobs, after })) {
      // its row may have been removed since, with the object
      if ((await store.getBlob(id)) === undefined) continue;
      log.error({ blobId: id, reason: 'DATA_CORRUPT' }, 'an object of the bucket is lost');
      lost += 1;
    }
    const last = blobs.at(-1);
    if (last === undefined) return lost;
    after = last.id;
  }
  return lost;
}

/** The blobs, all behind `after` and in the order of their ids, whose objects are not whole. */
export async function lostOf(
  bucket: Bucket,
  { blobs, after }: { blobs: readonly { id: string; size: number }[]; after: string },
): Promise<string[]> {
  const last = blobs.at(-1);
  if (last === undefined) return [];
  const sizes = await sizesBetween(bucket, after, last.id);
  return blobs.filter(({ id, size }) => sizes.get(id) !== size).map(({ id }) => id);
}

/** By id, of the objects after the first id, up to the last. */
async function sizesBetween(
  bucket: Bucket,
  after: string,
  last: string,
): Promise<Map<string, number>> {
  const { prefix } = bucket.place;
  const sizes = new Map<string, number>();
  let key = prefix + after;
  for (;;) {
    const { items, isLast } = await trying(() => bucket.list(key));
    for (const { key: found, size } of items) sizes.set(found.slice(prefix.length), size);
    key = items.at(-1)?.key ?? key;
    if (isLast || items.length === 0 || key >= prefix + last) return sizes;
  }
}
