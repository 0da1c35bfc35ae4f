/**
 * What is made of a blob, on this machine, cached by the hash of its bytes: an entry is complete
 * and right, or it is not there. An entry that is the blob itself is hashed at its first use in a
 * process; what is unpacked from one is of this boot of the machine (runner/machine/cache.ts). Two
 * who need the
 * same one share a download. What is not used for a while is removed at start.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { until } from './abort.ts';

/** Ours: it can be downloaded again. */
const UNUSED_MS = 7 * 24 * 3_600_000;
const SHA256 = /^[0-9a-f]{64}$/;
const ASIDE = '.part';
const RM = { recursive: true, force: true } as const;

/** What is kept in one cache. */
export type Kept = {
  /** For messages, with its article, such as `a bundle`. */
  what: string;
  maxBytes: number;
  /** Of a download. */
  timeoutMs: number;
  /** Behind the hash, in the entry's name. */
  ending: string;
  /** The entry is a file of the blob's bytes: its hash can be checked. */
  isBlob: boolean;
  /** Makes the entry of the file, in the file's own directory; gives its path there. */
  make(file: string): Promise<string>;
};

export type BlobCache = {
  /** The entry's path. Throws when its bytes cannot be had or are others. */
  get(wanted: { blobId: string; sha256: string }, signal: AbortSignal): Promise<string>;
};

export type CacheOptions = {
  dir: string;
  clients: Pick<Clients, 'blobs'>;
  call: CallOptions;
  /** Compared with times of files. */
  now?: () => number;
};

export async function openBlobCache(options: CacheOptions, kept: Kept): Promise<BlobCache> {
  const { dir, clients, call, now = Date.now } = options;
  const { what, timeoutMs } = kept;
  await mkdir(dir, { recursive: true });
  await removeOld(dir, now() - UNUSED_MS);
  const underWay = new Map<string, Promise<string>>();
  /** The sizes of entries whose hash was checked by this process. */
  const checked = new Map<string, number>();

  /** False also when it is not there. */
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
      if (hash.digest('hex') !== sha256) throw new Error(`${what} of other bytes than its hash`);
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
      if (!SHA256.test(sha256)) throw new Error(`${what} without a hash`);
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
    if (bytes > maxBytes) throw new Error(`${what} of more than ${maxBytes >> 20} MiB`);
    hash.update(chunk);
    yield chunk;
  }
}

/** Of a file's bytes, in lower-case hex. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function orMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** Says that it was used; false when it is not there. */
async function touch(path: string, now: number): Promise<boolean> {
  const touched = utimes(path, now / 1_000, now / 1_000).then(() => true);
  return (await touched.catch(orMissing)) ?? false;
}

async function removeOld(dir: string, before: number): Promise<void> {
  for (const name of await readdir(dir)) {
    const path = join(dir, name);
    const { mtimeMs } = await stat(path);
    if (name.endsWith(ASIDE) || mtimeMs < before) await rm(path, RM);
  }
}
