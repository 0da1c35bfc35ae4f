/** A backup of the running core, as a stream of the tar's bytes. One at a time. */
import { readFileSync } from 'node:fs';
import type { OperatorServiceService } from '../../../proto/gen/tabern/v1/operators.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import type { MachineCaller, Service } from '../../api/interceptors.ts';
import type { Blobs } from '../../files/blobs.ts';
import type { Store } from '../../store/types.ts';
import { takeBackup } from './create.ts';

const PACKAGE = new URL('../../../package.json', import.meta.url);

export function backupService(options: {
  store: Pick<Store, 'snapshot'>;
  files: Pick<Blobs, 'hold'>;
  dataDir: string;
  /** As in BackupSource. */
  bucketName: string;
  now: () => number;
}): Pick<Service<typeof OperatorServiceService, MachineCaller>, 'createBackup'> {
  const { store, files, dataDir, bucketName: bucket, now } = options;
  let isRunning = false;

  return {
    async *createBackup({ withMasterKey }, { call, login }) {
      if (withMasterKey && login !== undefined) {
        const message = 'A backup with the master key needs the operator token: `tabern backup`.';
        throw new Fault('TOKEN_REQUIRED', message);
      }
      if (isRunning) {
        const message = 'A backup is being taken. Try again when it has ended.';
        throw new Fault('RATE_LIMIT', message);
      }
      isRunning = true;
      try {
        await using _ = files.hold();
        const { signal } = call;
        const source = { dataDir, bucket, version: version(), withMasterKey, signal, at: now() };
        for await (const part of takeBackup({ ...source, snapshot: store.snapshot })) {
          signal.throwIfAborted();
          yield Buffer.isBuffer(part)
            ? { part: { $case: 'chunk', value: part } as const }
            : { part: { $case: 'start', value: part } as const };
        }
      } finally {
        isRunning = false;
      }
    },
  };
}

export function version(): string {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string };
  return version;
}
