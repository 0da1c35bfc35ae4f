/**
 * Caches blobs, or files unpacked from blobs, on this machine by the hash of the blob. An entry is
 * complete and correct, or missing: a blob is hashed at its first use in a process, and unpacked
 * files are of this boot of the machine (runner/machine/cache.ts). Concurrent requests share a
 * download. Unused entries are removed at start.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { until } from './abort.ts';
import { orMissing } from './errno.ts';

/** Ours: it can be downloaded again. */
const UNUSED_MS = 7 * 24 * 3_600_000;
const SHA256 = /^[0-9a-f]{64}$/;
const ASIDE = '.part';
/** A younger one may be that of another runner: during an upgrade two share the directory. Ours. */
export const ASIDE_MS = 3_600_000;
const RM = { recursive: true, force: true } as const;

/** The content of one cache. */
export type Kept = {
  /** For error messages, with its article, such as `a bundle`. */
  what: string;
  maxBytes: number;
  /** Of a download. */
  timeoutMs: number;
  /** The suffix of an entry's name, after the hash. */
  ending: string;
  /** The entry is the blob itself, so its hash can be checked. */
  isBlob: boolean;
  /** Makes the entry from the file, in the file's own directory; returns its path there. */
  make(file: string): Promise<string>;
};

export type BlobCache = {
  /** The entry's path. Throws when the download fails or the hash differs. */
  get(wanted: { blobId: string; sha256: string }, signal: AbortSignal): Promise<string>;
};

export type CacheOptions = {
  dir: string;
  clients: Pick<Clients, 'blobs'>;
  call: CallOptions;
  /** Compared with file times. */
  now?: () => number;
};

export async function openBlobCache(options: CacheOptions, kept: Kept): Promise<BlobCache> {
  const { dir, clients, call, now = Date.now } = options;
  const { what, timeoutMs } = kept;
  await mkdir(dir, { recursive: true });
  await removeOld(dir, { unused: now() - UNUSED_MS, aside: now() - ASIDE_MS });
  const underWay = new Map<string, Promise<string>>();
  /** The sizes of entries whose hash this process has checked. */
  const checked = new Map<string, number>();

  /** Also false for a missing entry. */
  const isRight = async (path: string, sha256: string): Promise<boolean> => {
    if (!kept.isBlob) return true;
    const size = (await stat(path).catch(orMissing))?.size;
    if (size === undefined) return false;
    if (checked.get(sha256) === size) return true;
    if ((await hashOf(path)) !== sha256) return false;
    checked.set(sha256, size);
    return true;
  };

  const add = async (blobId: string, sha256: string): Promise<string> => {
    const path = join(dir, `${sha256}${kept.ending}`);
    if ((await isRight(path, sha256)) && (await touch(path, now()))) return path;
    await rm(path, RM);
    const aside = join(dir, `${randomUUID()}${ASIDE}`);
    try {
      await mkdir(aside);
      const file = join(aside, 'bytes');
      const hash = createHash('sha256');
      const parts = clients.blobs.readBlob({ blobId }, { ...call, timeoutMs });
      await pipeline(bytesOf(parts, { hash, ...kept }), createWriteStream(file));
      if (hash.digest('hex') !== sha256) throw new Error(`${what} does not match its hash`);
      await rename(await kept.make(file), path);
      await touch(path, now());
      if (kept.isBlob) checked.set(sha256, (await stat(path)).size);
    } finally {
      await rm(aside, RM);
    }
    return path;
  };

  return {
    async get({ blobId, sha256 }, signal) {
      if (!SHA256.test(sha256)) throw new Error(`${what} has no valid hash`);
      let added = underWay.get(sha256);
      if (added === undefined) {
        added = add(blobId, sha256).finally(() => underWay.delete(sha256));
        underWay.set(sha256, added);
      }
      return await until(added, signal);
    },
  };
}

async function* bytesOf(
  parts: AsyncIterable<{ chunk: Uint8Array }>,
  { hash, what, maxBytes }: Kept & { hash: ReturnType<typeof createHash> },
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const { chunk } of parts) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Error(`${what} is larger than ${maxBytes >> 20} MiB`);
    hash.update(chunk);
    yield chunk;
  }
}

/** The SHA-256 of a file's bytes, in lower-case hex. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Marks the entry as used; false when it is missing. */
async function touch(path: string, now: number): Promise<boolean> {
  const touched = utimes(path, now / 1_000, now / 1_000).then(() => true);
  return (await touched.catch(orMissing)) ?? false;
}

async function removeOld(dir: string, before: { unused: number; aside: number }): Promise<void> {
  for (const name of await readdir(dir)) {
    const path = join(dir, name);
    const found = await stat(path).catch(orMissing); // another runner may have removed it
    const limit = name.endsWith(ASIDE) ? before.aside : before.unused;
    if (found !== undefined && found.mtimeMs < limit) await rm(path, RM);
  }
}
