/** The bytes of a blob as a body. */
import { Readable } from 'node:stream';
import type { ReadBlobResponse } from '../../proto/gen/tabern/v1/blobs.pb.ts';
import { asFault } from '../../proto/rpc/errors.ts';

/** Once the first have come: what is refused is refused before the answer begins. */
export async function begun(blob: AsyncIterable<ReadBlobResponse>): Promise<Readable> {
  const parts = blob[Symbol.asyncIterator]();
  return bytesOf(await parts.next(), parts);
}

/** The bytes of the parts, which end with it: also when nobody has read a byte of it. */
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
