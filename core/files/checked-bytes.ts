/**
 * Verified reads of stored files. The last chunk is returned only when size and hash match the row,
 * so damaged bytes never look like a complete file.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Fault } from '../../proto/rpc/errors.ts';
import type { BlobRow } from '../store/types/files.ts';

/** The file's data in its blob's row. */
export type Stored = Pick<BlobRow, 'id' | 'size' | 'sha256'>;

/** Error codes that mean lost bytes; others are errors of the process. */
const LOST: readonly unknown[] = ['ENOENT', 'EIO', 'EISDIR'];

/** Of a file. Throws DATA_CORRUPT instead of the last chunk. */
export async function* checkedBytes(
  path: string,
  blob: Stored,
  chunkBytes: number,
): AsyncGenerator<Buffer> {
  const parts = createReadStream(path, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>;
  try {
    yield* checked(parts, blob);
  } catch (error) {
    throw lostOrSame(error, blob.id);
  }
}

/** Throws DATA_CORRUPT instead of the last chunk when size or hash differ from the row. */
export async function* checked(
  parts: AsyncIterable<Buffer>,
  { id, size, sha256 }: Stored,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let read = 0;
  let held: Buffer | undefined;
  for await (const bytes of parts) {
    read += bytes.length;
    if (read > size) throw damaged(id);
    hash.update(bytes);
    if (held !== undefined) yield held;
    held = bytes;
  }
  if (read !== size || hash.digest('hex') !== sha256) throw damaged(id);
  if (held !== undefined) yield held;
}

/** DATA_CORRUPT for an error that means lost bytes, and any other as it is. */
export function lostOrSame(error: unknown, blobId: string): unknown {
  return LOST.includes((error as NodeJS.ErrnoException).code) ? damaged(blobId, error) : error;
}

export function isDamage(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'DATA_CORRUPT';
}

export function damaged(blobId: string, cause?: unknown): Fault {
  return new Fault('DATA_CORRUPT', 'A stored file is damaged.', { blobId }, cause);
}
