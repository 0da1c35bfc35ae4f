/**
 * Uploads a blob: to core, or past core to its bucket. While core restarts, or the bucket is away,
 * the upload is repeated from `content`, which is on this machine.
 */
import type {
  WriteBlobRequest_Kind,
  WriteBlobResponse,
} from '../../proto/gen/tabern/v1/blobs.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { openSemaphore } from '../../proto/sharing/semaphore.ts';
import { type BlobClient, storeBlob } from '../../proto/uploads/direct.ts';
import { retryCall } from './core-calls.ts';

/** Of one message. */
export const CHUNK_BYTES = 64 << 10;
/**
 * Requests of this runner to a bucket at the same time, each with 5 MiB in memory. A project has
 * half of them, so that one that uploads much does not hold the others. Ours.
 */
const REQUESTS = { max: 8, ofOwner: 4 };

export type Blob = {
  kind: WriteBlobRequest_Kind;
  leaseId: string;
  /** Its row is written by a report, with the receipt of the answer. */
  reported?: true;
  /** Read again by each attempt, in chunks of at most CHUNK_BYTES. */
  content(): AsyncIterable<Buffer>;
};

const semaphore = openSemaphore(REQUESTS);

/**
 * Stores the blob under its lease. `timeoutMs` of the options limits each attempt, and the time for
 * which a bucket may be away. `owner`: the project, or the lease.
 */
export async function uploadBlob(
  { blobs }: { blobs: BlobClient },
  { content, ...header }: Blob,
  { owner = header.leaseId, ...call }: CallOptions & { timeoutMs: number; owner?: string },
): Promise<WriteBlobResponse> {
  const how = { ...call, retryMs: call.timeoutMs, slots: { semaphore, owner } };
  const store = () => storeBlob(blobs, { header, bytes: content() }, how);
  return await retryCall(store, call.signal);
}
