/** Transfers of a build's bytes: the archive from core, the bundle to core. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { ARCHIVE_MAX_BYTES } from '../../proto/common/limits.ts';
import { CHUNK_BYTES, uploadBlob } from '../common/blob-upload.ts';
import type { Build } from './build.ts';
import { buildError } from './build-failure.ts';

/** Of one transfer. Ours. */
const TRANSFER_TIMEOUT_MS = 120_000;

/** Writes the build's archive to a new file. Jails read it under a uid of their own. */
export async function download(build: Build, file: string): Promise<void> {
  const { deps, work, lease, signal } = build;
  const options = { ...lease.call, signal, timeoutMs: TRANSFER_TIMEOUT_MS };
  await using out = await open(file, 'wx', 0o644);
  let bytes = 0;
  const blobId = work.archiveBlobId;
  for await (const { chunk } of deps.runner.clients.blobs.readBlob({ blobId }, options)) {
    bytes += chunk.length;
    if (bytes > ARCHIVE_MAX_BYTES) {
      throw buildError(`the archive is larger than ${ARCHIVE_MAX_BYTES} bytes`);
    }
    await out.writeFile(chunk);
  }
}

/** Stores the bundle under the build's lease; returns its blob id. */
export async function upload({ deps, lease, signal }: Build, file: string): Promise<string> {
  const content = () => createReadStream(file, { highWaterMark: CHUNK_BYTES });
  const options = { ...lease.call, signal, timeoutMs: TRANSFER_TIMEOUT_MS };
  const bundle = { kind: 'BUNDLE', leaseId: lease.id, content } as const;
  const { blobId } = await uploadBlob(deps.runner.clients, bundle, options);
  return blobId;
}
