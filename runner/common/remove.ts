/**
 * Removes a directory that a tenant's programs could write. They may nest directories deeper than
 * the system's longest path (by a rename, or in a jail with a shorter prefix), and names may be any
 * bytes. Call it when no process writes there any more.
 */
import { randomUUID } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';

const RM = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 } as const;
/** In bytes. Ours: with another name of 255, far below the 4,096 of Linux. */
const PATH_MAX_BYTES = 2_048;
const SLASH = Buffer.from('/');

/** A missing directory is not an error. */
export async function removeTree(root: string): Promise<void> {
  try {
    await rm(root, RM);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENAMETOOLONG') throw error;
    await flatten(Buffer.from(root));
    await rm(root, RM);
  }
}

/** Moves directories that are too deep to the top. Links are not followed. */
async function flatten(root: Buffer): Promise<void> {
  const dirs = [root];
  for (let dir = dirs.pop(); dir !== undefined; dir = dirs.pop()) {
    for (const entry of await readdir(dir, { withFileTypes: true, encoding: 'buffer' })) {
      if (!entry.isDirectory()) continue;
      const path = Buffer.concat([dir, SLASH, entry.name]);
      if (path.length <= PATH_MAX_BYTES) {
        dirs.push(path);
        continue;
      }
      const top = Buffer.concat([root, SLASH, Buffer.from(randomUUID())]);
      await rename(path, top);
      dirs.push(top);
    }
  }
}
