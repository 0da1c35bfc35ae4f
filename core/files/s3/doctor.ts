/** The bucket in `tabern doctor`: changes nothing. */
import type { Sealer } from '../../common/sealer.ts';
import { openBucket } from './bucket.ts';
import { sentenceOf } from './errors.ts';
import { inspectBucket } from './health.ts';
import { lostOf } from './losses.ts';
import { ownerName } from './open.ts';
import type { S3Place } from './place.ts';

type Known = { id: string; size: number };

/** `problem` is empty when the bucket can be read. */
export async function checkBucket(
  place: S3Place,
  { sealer, blobs }: { sealer: Sealer | undefined; blobs: readonly Known[] },
): Promise<{ problem: string; lost: string[] }> {
  using bucket = openBucket(place);
  const problem = await inspectBucket(bucket, sealer && ownerName(sealer));
  if (problem !== '') return { problem, lost: [] };
  try {
    const inOrder = blobs.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    return { problem, lost: await lostOf(bucket, { blobs: inOrder, after: '' }) };
  } catch (error) {
    return { problem: sentenceOf(error, place), lost: [] };
  }
}
