/** Browser extensions on this machine: a directory each, unpacked once, named by its zip's hash. */
import { chmod, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { extensionEntries } from '../proto/extension-zip.ts';
import { type BlobCache, type CacheOptions, openBlobCache } from './blob-cache.ts';

/** Ours: 100 MB over a link of 10 Mbit/s. */
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Source: blobs.proto. */
const ZIP_MAX_BYTES = 100 << 20;

/** Gives the directory that Chrome loads. */
export type Extensions = BlobCache;

export function openExtensions(options: CacheOptions): Promise<Extensions> {
  return openBlobCache(options, {
    ...{ what: 'an extension', maxBytes: ZIP_MAX_BYTES, timeoutMs: DOWNLOAD_TIMEOUT_MS },
    ending: '',
    async make(zip) {
      const dir = join(dirname(zip), 'unpacked');
      await unpack(zip, dir);
      return dir;
    },
  });
}

/** Readable to Chrome, which has another uid where the runner is root. */
async function unpack(zip: string, dir: string): Promise<void> {
  const directory = async (path: string): Promise<void> => {
    await mkdir(path, { recursive: true });
    await chmod(path, 0o755);
  };
  await directory(dir);
  for await (const { kind, path, body } of extensionEntries(zip)) {
    const inside = join(dir, path);
    if (kind === 'directory') {
      await directory(inside);
      continue;
    }
    for (let above = dirname(inside); above.length > dir.length; above = dirname(above)) {
      await directory(above);
    }
    await using file = await open(inside, 'wx', 0o644);
    await file.chmod(0o644);
    for await (const chunk of body()) await file.writeFile(chunk);
  }
}
