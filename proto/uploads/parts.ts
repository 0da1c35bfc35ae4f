/** Cuts a stream into parts for an upload in several requests. */

/** In bytes: the least that S3 accepts for all parts but the last one. */
export const PART_BYTES = 5 << 20;

export type Part = { body: Buffer; isLast: boolean };

/**
 * Parts of PART_BYTES, and the rest; one empty part of an empty stream. At most two parts are in
 * memory.
 */
export async function* partsOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  let chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    chunks.push(chunk);
    size += chunk.byteLength;
    while (size > PART_BYTES) {
      const buffer = Buffer.concat(chunks);
      yield { body: buffer.subarray(0, PART_BYTES), isLast: false };
      chunks = [buffer.subarray(PART_BYTES)];
      size -= PART_BYTES;
    }
  }
  yield { body: Buffer.concat(chunks), isLast: true };
}
