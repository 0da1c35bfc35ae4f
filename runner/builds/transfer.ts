/** The bytes of a build on their way: the archive out of core, the bundle into it. */
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { ARCHIVE_MAX_BYTES } from '../../proto/common/limits.ts';
import type { WriteBlobRequest } from '../../proto/gen/tabern/v1/blobs.pb.ts';
import type { BuildWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { retryCall } from '../common/core-calls.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import type { Lease } from '../leases/lease.ts';
import { BuildFailure } from './build-failure.ts';

const CHUNK_BYTES = 64 * 1024;
/** Of one blob, one way. Ours. */
const TRANSFER_TIMEOUT_MS = 120_000;

type Transfer = {
  deps: { runner: Pick<RunnerContext, 'clients'> };
  work: BuildWork;
  lease: Lease;
  signal: AbortSignal;
};

/** Writes the build's archive to a new file. Jails read it under a uid of their own. */
export async function download(
  { deps, work, lease, signal }: Transfer,
  file: string,
): Promise<void> {
  const options = { ...lease.call, signal, timeoutMs: TRANSFER_TIMEOUT_MS };
  await using out = await open(file, 'wx', 0o644);
  let bytes = 0;
  const blobId = work.archiveBlobId;
  for await (const { chunk } of deps.runner.clients.blobs.readBlob({ blobId }, options)) {
    bytes += chunk.length;
    if (bytes > ARCHIVE_MAX_BYTES) {
      throw new BuildFailure(
        'BUILD_ERROR',
        `the archive is larger than ${ARCHIVE_MAX_BYTES} bytes`,
      );
    }
    await out.writeFile(chunk);
  }
}

/** Stores the bundle under the build's lease; gives its blob id. */
export async function upload({ deps, lease, signal }: Transfer, file: string): Promise<string> {
  async function* parts(): AsyncGenerator<WriteBlobRequest> {
    yield { part: { $case: 'header', value: { kind: 'BUNDLE', leaseId: lease.id } } };
    for await (const chunk of createReadStream(file, { highWaterMark: CHUNK_BYTES })) {
      yield { part: { $case: 'chunk', value: chunk } };
    }
  }
  const options = { ...lease.call, signal, timeoutMs: TRANSFER_TIMEOUT_MS };
  const { blobId } = await retryCall(() => deps.runner.clients.blobs.writeBlob(parts(), options));
  return blobId;
}
