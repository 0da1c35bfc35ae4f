/** The runner's cache of functions' bundles: one read-only file each, named by its hash. */
import { chmod, copyFile, link } from 'node:fs/promises';
import { join } from 'node:path';
import { BUNDLE_MAX_BYTES } from '../../proto/common/limits.ts';
import { type CacheOptions, openBlobCache } from '../common/blob-cache.ts';

/** Ours: a bundle of 32 MiB over a slow link. */
const DOWNLOAD_TIMEOUT_MS = 60_000;

export type Bundle = { path: string; sha256: string };
export type Bundles = {
  /** The file with these bytes. Throws when the download fails or the hash differs. */
  get(wanted: { blobId: string; sha256: string }, signal: AbortSignal): Promise<Bundle>;
};

export async function openBundles(options: CacheOptions): Promise<Bundles> {
  const cache = await openBlobCache(options, {
    what: 'a bundle',
    maxBytes: BUNDLE_MAX_BYTES,
    timeoutMs: DOWNLOAD_TIMEOUT_MS,
    ending: '.mjs',
    isBlob: true,
    async make(file) {
      await chmod(file, 0o444);
      return file;
    },
  });
  return {
    async get(wanted, signal) {
      return { path: await cache.get(wanted, signal), sha256: wanted.sha256 };
    },
  };
}

/** Links a bundle into the directory that a jail reads; copies it where links are not allowed. */
export async function putBundle({ path, sha256 }: Bundle, dir: string): Promise<void> {
  const inside = join(dir, `${sha256}.mjs`);
  try {
    await link(path, inside);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'EMLINK') throw error;
    await copyFile(path, inside);
    await chmod(inside, 0o444);
  }
}
