/**
 * Bundles on this machine, cached by the hash of their bytes: a file is complete and right, or it
 * is not there. Two invocations that need the same one share a download. What is not used for a
 * while is removed at start.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, copyFile, link, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CallOptions } from '../proto/rpc.ts';
import type { Clients } from '../proto/services.ts';

/** Ours: a bundle of 32 MiB over a slow link. */
const DOWNLOAD_TIMEOUT_MS = 60_000;
/** Source: design/core.md (BUNDLE of BlobService). */
const BUNDLE_MAX_BYTES = 32 * 1024 * 1024;
/** Ours: it can be downloaded again. */
const UNUSED_MS = 7 * 24 * 3_600_000;
const SHA256 = /^[0-9a-f]{64}$/;

export type Bundle = { path: string; sha256: string };
export type Bundles = {
  /** The file with these bytes. Throws when they cannot be had or are others. */
  get(wanted: { blobId: string; sha256: string }, signal: AbortSignal): Promise<Bundle>;
};

export async function openBundles(options: {
  dir: string;
  clients: Pick<Clients, 'blobs'>;
  call: CallOptions;
  now: () => number;
}): Promise<Bundles> {
  const { dir, clients, call, now } = options;
  await mkdir(dir, { recursive: true });
  await removeOld(dir, now() - UNUSED_MS);
  const underWay = new Map<string, Promise<Bundle>>();

  const download = async (blobId: string, sha256: string): Promise<Bundle> => {
    const path = join(dir, `${sha256}.mjs`);
    const seconds = now() / 1_000;
    // also what says that it was used
    const isThere = await utimes(path, seconds, seconds).then(() => true, isMissing);
    if (isThere) return { path, sha256 };
    const aside = join(dir, `${randomUUID()}.part`);
    try {
      const hash = createHash('sha256');
      const parts = clients.blobs.readBlob({ blobId }, { ...call, timeoutMs: DOWNLOAD_TIMEOUT_MS });
      await pipeline(bytesOf(parts, hash), createWriteStream(aside));
      const found = hash.digest('hex');
      if (found !== sha256) throw new Error(`bundle ${blobId} has other bytes than its hash says`);
      await chmod(aside, 0o444);
      await rename(aside, path);
    } finally {
      await rm(aside, { force: true });
    }
    return { path, sha256 };
  };

  return {
    async get({ blobId, sha256 }, signal) {
      if (!SHA256.test(sha256)) throw new Error('a bundle without a hash');
      let bundle = underWay.get(sha256);
      if (bundle === undefined) {
        bundle = download(blobId, sha256).finally(() => underWay.delete(sha256));
        underWay.set(sha256, bundle);
      }
      return await until(bundle, signal);
    },
  };
}

/** Puts a bundle into the directory that a jail reads; a copy where a link is refused. */
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

async function* bytesOf(
  parts: AsyncIterable<{ chunk: Uint8Array }>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const { chunk } of parts) {
    bytes += chunk.length;
    if (bytes > BUNDLE_MAX_BYTES) throw new Error('a bundle of more than 32 MiB');
    hash.update(chunk);
    yield chunk;
  }
}

/** The promise, or the signal's reason when that is first. */
export async function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([promise, ended]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function isMissing(error: NodeJS.ErrnoException): false {
  if (error.code === 'ENOENT') return false;
  throw error;
}

async function removeOld(dir: string, before: number): Promise<void> {
  for (const name of await readdir(dir)) {
    const path = join(dir, name);
    const { mtimeMs } = await stat(path);
    if (name.endsWith('.part') || mtimeMs < before) await rm(path, { force: true });
  }
}
