/**
 * The bytes of a stored file on their way out. Disks rot: the last piece is handed out only when
 * size and hash are those of the row, so damaged bytes never look like a whole file.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Fault } from '../../proto/rpc/errors.ts';

/** What the row of a blob says of its file. */
export type Stored = {
  id: string;
  /** In bytes. */
  size: number;
  /** Lower-case hex. */
  sha256: string;
};

/** Codes of reads that say that the bytes are gone; any other is the process's own trouble. */
const LOST: readonly unknown[] = ['ENOENT', 'EIO', 'EISDIR'];

/** Throws DATA_CORRUPT in the place of the last piece. */
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
