/** Uploads as streams: deadlines while they arrive, and the requests that store them. */
import type { IncomingMessage } from 'node:http';
import type {
  WriteBlobRequest,
  WriteBlobRequest_Header,
} from '../../../proto/gen/tabern/v1/blobs.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { UPLOAD_IDLE_MS } from '../../config.ts';
import { tooLarge } from '../../http/body.ts';

/** Fails an upload whose client disconnects, or sends nothing for UPLOAD_IDLE_MS. */
export function watchUpload(request: IncomingMessage, fail: (fault: Fault) => void): Disposable {
  const slow = new Fault('REQUEST_TIMEOUT', 'The upload took too long to arrive.');
  const idle = setTimeout(() => fail(slow), UPLOAD_IDLE_MS);
  request.on('data', () => idle.refresh());
  request.once('end', () => clearTimeout(idle));
  // Requests close also after complete bodies, often before their parts are read.
  request.once('close', () => {
    if (!request.complete) fail(new Fault('CANCELLED', 'The client left.'));
  });
  return { [Symbol.dispose]: () => clearTimeout(idle) };
}

/** The chunks. Throws BODY_TOO_LARGE when they exceed the limit. */
export async function* limited(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

/** The requests of WriteBlob. */
export async function* blobOf(
  header: WriteBlobRequest_Header,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<WriteBlobRequest> {
  yield { part: { $case: 'header', value: header } };
  for await (const chunk of chunks) yield { part: { $case: 'chunk', value: chunk } };
}
