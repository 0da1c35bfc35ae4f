/** Uploads a blob to core. */
import type {
  WriteBlobRequest,
  WriteBlobRequest_Kind,
} from '../../proto/gen/tabern/v1/blobs.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { retryCall } from './core-calls.ts';

/** Of one message. */
export const CHUNK_BYTES = 64 << 10;

export type Blob = {
  kind: WriteBlobRequest_Kind;
  leaseId: string;
  /** Read again by each attempt, in chunks of at most CHUNK_BYTES. */
  content(): AsyncIterable<Buffer> | Iterable<Buffer>;
};

/** Stores the blob under its lease; returns its id. Retries while core restarts. */
export async function uploadBlob(
  { blobs }: { blobs: Pick<Clients['blobs'], 'writeBlob'> },
  { kind, leaseId, content }: Blob,
  options: CallOptions,
): Promise<string> {
  async function* parts(): AsyncGenerator<WriteBlobRequest> {
    yield { part: { $case: 'header', value: { kind, leaseId } } };
    for await (const value of content()) yield { part: { $case: 'chunk', value } };
  }
  const { blobId } = await retryCall(() => blobs.writeBlob(parts(), options));
  return blobId;
}
