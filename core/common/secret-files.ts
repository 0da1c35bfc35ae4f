/** Secrets in files of the data directory: created once, mode 0600, synced before use. */
import { randomBytes } from 'node:crypto';
import { createFile, readToken } from '../../proto/common/durable.ts';
import { DataError } from '../../proto/common/env.ts';

const DAY_MS = 86_400_000;

/** How long a file exists that was written at `at`, by the machine's clock. */
export function ageOf(at: number): string {
  const days = Math.max(0, Math.floor((Date.now() - at) / DAY_MS));
  if (days === 0) return 'less than a day';
  return days === 1 ? 'a day' : `${days} days`;
}

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
