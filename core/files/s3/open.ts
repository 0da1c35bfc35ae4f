/** Opens a bucket as the storage of blobs. */
import { join } from 'node:path';
import type { Log } from '../../../proto/common/log.ts';
import type { Metrics } from '../../../proto/common/metrics.ts';
import type { Sealer } from '../../common/sealer.ts';
import type { Store } from '../../store/types.ts';
import type { Blobs } from '../blobs.ts';
import { openBucket } from './bucket.ts';
import { type BucketHealth, watchBucket } from './health.ts';
import { startLossCheck } from './losses.ts';
import { openObjects } from './objects.ts';
import type { S3Place } from './place.ts';

/** In the data directory. */
export const SPOOL = 'spool';

type Deps = {
  store: Pick<Store, 'listBlobs' | 'getBlob'>;
  sealer: Sealer;
  log: Log;
  metrics: Metrics;
  opened: AsyncDisposableStack;
  isHeld: () => boolean;
  dataDir: string;
};

export async function openS3(
  place: S3Place,
  deps: Deps,
): Promise<{ files: Blobs; health: BucketHealth }> {
  const { sealer, opened, log, dataDir } = deps;
  const bucket = opened.use(openBucket(place));
  const owner = ownerName(sealer);
  const health = opened.use(await watchBucket({ bucket, owner, log }));
  const files = await openObjects({ bucket, spoolDir: join(dataDir, SPOOL), log });
  const isHeld = () => deps.isHeld() || health.problem !== '';
  opened.use(startLossCheck({ ...deps, bucket, isHeld }));
  return { files, health };
}

/** Of the installation: whoever has its master key. */
export function ownerName(sealer: Sealer): string {
  return sealer.derive('the owner of a bucket').toString('hex');
}
