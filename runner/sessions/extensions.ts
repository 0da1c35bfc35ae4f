/**
 * Browser extensions on this machine: one directory each, unpacked once, named by its zip's hash.
 * The rules of an upload are checked again: an extension may be older than a rule.
 */
import { chmod, mkdir, open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  checkManifest,
  ExtensionError,
  extensionEntries,
} from '../../proto/archives/extension-zip.ts';
import { EXTENSION_MAX_BYTES } from '../../proto/common/limits.ts';
import { type BlobCache, type CacheOptions, openBlobCache } from '../common/blob-cache.ts';

/** Ours: 100 MB over a link of 10 Mbit/s. */
const DOWNLOAD_TIMEOUT_MS = 120_000;

export type Extensions = {
  /** The directory that Chrome loads, or the reason why it must not. */
  get(...wanted: Parameters<BlobCache['get']>): Promise<{ dir: string } | { refused: string }>;
};

export async function openExtensions(options: CacheOptions): Promise<Extensions> {
  const cache = await openBlobCache(options, {
    what: 'an extension',
    maxBytes: EXTENSION_MAX_BYTES,
    timeoutMs: DOWNLOAD_TIMEOUT_MS,
    ending: '',
    isBlob: false,
    async make(zip) {
      const dir = join(dirname(zip), 'unpacked');
      await unpack(zip, dir);
      return dir;
    },
  });
  /** By directory; undefined: it may be loaded. */
  const refusals = new Map<string, string | undefined>();
  return {
    async get(wanted, signal) {
      const dir = await cache.get(wanted, signal);
      if (!refusals.has(dir)) refusals.set(dir, await refusalOf(dir));
      const refused = refusals.get(dir);
      return refused === undefined ? { dir } : { refused };
    },
  };
}

/** Of at most 1 MiB: larger ones are refused at upload. */
async function refusalOf(dir: string): Promise<string | undefined> {
  try {
    checkManifest(await readFile(join(dir, 'manifest.json'), 'utf8'));
    return undefined;
  } catch (error) {
    if (error instanceof ExtensionError) return error.message;
    throw error;
  }
}

/** Readable by Chrome, which has another uid when the runner is root. */
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
