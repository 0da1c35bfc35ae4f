/**
 * Secrets that live in files of the data directory: made once, mode 0600, on disk before they are
 * used.
 */
import { randomBytes } from 'node:crypto';
import { createFile, readToken } from '../../proto/common/durable.ts';
import { DataError } from '../../proto/common/env.ts';

/** The token in that file; a new one of 32 random bytes when there is no file. */
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
