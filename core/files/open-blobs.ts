/** Opens the engine of the settings, with the work that goes on beside it. */
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import type { Metrics } from '../../proto/common/metrics.ts';
import type { Sealer } from '../common/sealer.ts';
import type { CoreConfig } from '../config.ts';
import type { Store } from '../store/types.ts';
import { openBlobFiles } from './blob-files.ts';
import type { Blobs } from './blobs.ts';
import { checkBucketOf } from './bucket-marker.ts';
import { startBlobSweep } from './orphan-sweep.ts';
import type { BucketHealth } from './s3/health.ts';
import { nameOf } from './s3/place.ts';
import { startScrub } from './scrub.ts';

type Deps = {
  store: Store;
  sealer: Sealer;
  log: Log;
  metrics: Metrics;
  now: () => number;
  isHeld: () => boolean;
  opened: AsyncDisposableStack;
};

export async function openBlobs(
  { dataDir, bucket: place }: Pick<CoreConfig, 'dataDir' | 'bucket'>,
  deps: Deps,
): Promise<{ files: Blobs; bucket: BucketHealth | undefined }> {
  const { opened, log } = deps;
  checkBucketOf(dataDir, nameOf(place));
  if (place === undefined) {
    const folder = join(dataDir, 'blobs');
    const files = await openBlobFiles(folder, log);
    opened.use(await startBlobSweep({ ...deps, files }));
    opened.use(startScrub({ ...deps, folder }));
    return { files, bucket: undefined };
  }
  // Loaded on demand: a core with files has no use for it.
  const { openS3 } = await import('./s3/open.ts');
  const { files, health } = await openS3(place, { ...deps, dataDir });
  const isHeld = () => deps.isHeld() || health.problem !== '';
  opened.use(await startBlobSweep({ ...deps, files, isHeld }));
  return { files, bucket: health };
}
