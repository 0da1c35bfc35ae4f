/** The bytes of a blob as a response body. */
import { Readable } from 'node:stream';
import type { ReadBlobResponse } from '../../proto/gen/tabern/v1/blobs.pb.ts';
import { asFault } from '../../proto/rpc/errors.ts';

/** Resolves with the first chunk, so that a refusal is answered before the body starts. */
export async function begun(blob: AsyncIterable<ReadBlobResponse>): Promise<Readable> {
  const parts = blob[Symbol.asyncIterator]();
  return bytesOf(await parts.next(), parts);
}

/** The bytes of the chunks. Closes the source with it, also when nothing was read. */
function bytesOf(
  first: IteratorResult<ReadBlobResponse>,
  parts: AsyncIterator<ReadBlobResponse>,
): Readable {
  let ahead: IteratorResult<ReadBlobResponse> | undefined = first;
  return new Readable({
    async read() {
      try {
        const part = ahead ?? (await parts.next());
        ahead = undefined;
        this.push(part.done ? null : part.value.chunk);
      } catch (error) {
        this.destroy(asFault(error));
      }
    },
    destroy(error, done) {
      const ended = async () => void (await parts.return?.());
      ended().then(() => done(error), done);
    },
  });
}
