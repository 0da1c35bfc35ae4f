/**
 * Backs up a data directory that no core uses. The directory is locked meanwhile, so that no core
 * starts.
 */
import { ConfigError } from '../../../proto/common/env.ts';
import { markedBucket } from '../../files/bucket-marker.ts';
import { hasDatabase } from '../../store/database-file.ts';
import { openOffline } from '../../store/offline.ts';
import { type BackupPart, takeBackup } from './create.ts';
import { version } from './service.ts';

/** Throws ConfigError when a core uses the directory, or it has no database. */
export async function* offlineBackup(
  dataDir: string,
  { withMasterKey, signal }: { withMasterKey: boolean; signal?: AbortSignal },
): AsyncGenerator<BackupPart> {
  if (!hasDatabase(dataDir)) {
    throw new ConfigError(
      `${dataDir} is no data directory: set TABERN_DATA or --data. A database in PostgreSQL is ` +
        'backed up by pg_dump: see "PostgreSQL" in the guide',
    );
  }
  using db = openOffline(dataDir);
  const bucket = markedBucket(dataDir);
  const source = { dataDir, bucket, version: version(), withMasterKey, signal, at: Date.now() };
  const snapshot = (path: string) => db.snapshot(path, signal);
  yield* takeBackup({ ...source, snapshot });
}
