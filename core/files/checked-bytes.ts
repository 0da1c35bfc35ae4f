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

/** Throws DATA_CORRUPT instead of the last chunk. */
export async function* checkedBytes(
  path: string,
  { id, size, sha256 }: Stored,
  chunkBytes: number,
): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  let read = 0;
  let held: Buffer | undefined;
  try {
    for await (const part of createReadStream(path, { highWaterMark: chunkBytes })) {
      const bytes = part as Buffer;
      read += bytes.length;
      if (read > size) throw damaged(id);
      hash.update(bytes);
      if (held !== undefined) yield held;
      held = bytes;
    }
  } catch (error) {
    throw LOST.includes((error as NodeJS.ErrnoException).code) ? damaged(id, error) : error;
  }
  if (read !== size || hash.digest('hex') !== sha256) throw damaged(id);
  if (held !== undefined) yield held;
}

export function isDamage(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'DATA_CORRUPT';
}

function damaged(blobId: string, cause?: unknown): Fault {
  return new Fault('DATA_CORRUPT', 'A stored file is damaged.', { blobId }, cause);
}
