/** `tabern restore FILE`: restores a backup into a new data directory. */
import { createReadStream, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { createZstdDecompress } from 'node:zlib';
import { ConfigError, type Env } from '../../../proto/common/env.ts';
import { openProgress } from '../../../proto/terminal/progress.ts';
import { endedBySignal } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { placeOf } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

type Restore = typeof import('../../../core/maintenance/backup/restore.ts').restoreBackup;

export async function restore(
  file: string,
  given: Given,
  { env, restoreBackup }: { env: Env; restoreBackup: Restore },
): Promise<number> {
  const { dataDir } = placeOf(given, env);
  const masterKey = keyOf(given['masterKey']);
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw new ConfigError(`the file ${file} does not exist`);
  const signal = endedBySignal('nothing was restored');
  const progress = openProgress('read', found.size);
  const read = async function* () {
    for await (const chunk of createReadStream(file)) {
      progress.add(chunk.length);
      yield chunk as Buffer;
    }
  };
  const bytes = file.endsWith('.zst') ? unpacked(read()) : read();
  const wanted = { bytes, dataDir, masterKey, signal };
  const { manifest, hasMasterKey } = await restoreBackup(wanted).finally(progress.end);
  const { createdAt, blobs, missing } = manifest;
  answer(given, { dataDir, createdAt, blobs, missing, hasMasterKey }, () => {
    print(dataDir);
    note(`restored the backup of ${createdAt}; all hashes match`);
  });
  for (const id of missing) note(`warning: blob ${id} is not in the backup; requests for it fail`);
  if (!hasMasterKey) {
    note(
      `copy the master key to ${join(dataDir, 'keys', 'master.key')} before you start the service`,
    );
  }
  return 0;
}

async function* unpacked(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // an error of either is the stream's and is handled by its reader
  const stream = pipeline(Readable.from(bytes), createZstdDecompress(), () => undefined);
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (cause) {
    throw new ConfigError('this is not a whole backup: it cannot be unpacked', { cause });
  }
}

function keyOf(path: string | boolean | undefined): string | undefined {
  if (typeof path !== 'string') return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ConfigError(`--master-key: cannot read ${path}`, { cause });
  }
}
