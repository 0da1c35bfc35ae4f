/**
 * Looks at what an install has left, before it is kept. Links are never followed: of node_modules
 * only what lies in it counts.
 */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildFailure } from '../build-failure.ts';

/** Ours: ten times a large project. */
const ENTRIES_MAX = 300_000;

/** The size in bytes; undefined when it is nothing to keep. */
export async function measure(root: string): Promise<number | undefined> {
  const top = join(root, 'node_modules');
  const found = await lstat(top).catch(() => undefined);
  if (!found?.isDirectory()) return undefined;
  let [bytes, entries] = [0, 0];
  for (const dirs = [top]; ; ) {
    const dir = dirs.pop();
    if (dir === undefined) return bytes;
    for (const entry of await readdir(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      entries += 1;
      if (entries > ENTRIES_MAX) return undefined;
      if (entry.isDirectory()) dirs.push(path);
      else if (entry.isFile()) {
        const { size, nlink } = await lstat(path);
        if (nlink > 1) return undefined; // somebody else has it, too
        bytes += size;
      } else if (!entry.isSymbolicLink()) {
        throw new BuildFailure('BUILD_ERROR', `${entry.name} is no file of a package`);
      }
    }
  }
}
