/** Secrets in files of the data directory: created once, mode 0600, synced before use. */
import { randomBytes } from 'node:crypto';
import { createFile, readToken } from '../../proto/common/durable.ts';
import { DataError } from '../../proto/common/env.ts';

/** Reads the token in that file; creates one of 32 random bytes when the file is missing. */
export function tokenFile(path: string): string {
  try {
    return readToken(path);
  } catch (error) {
    if (error instanceof DataError) throw error;
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new DataError(`${path} cannot be read`, { cause: error });
    }
  }
  createFile(path, `${randomBytes(32).toString('base64url')}\n`);
  return readToken(path);
}
