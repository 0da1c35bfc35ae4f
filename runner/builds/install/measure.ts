/** Measures an install before it is cached. Links are never followed. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { buildError } from '../build-failure.ts';

/** Ours: ten times a large project. */
const ENTRIES_MAX = 300_000;

/** The size in bytes of node_modules; undefined when it must not be cached. */
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
        if (nlink > 1) return undefined; // a hard link from elsewhere
        bytes += size;
      } else if (!entry.isSymbolicLink()) {
        throw buildError(`${entry.name} is not a file, a directory or a link`);
      }
    }
  }
}
