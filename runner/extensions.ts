/**
 * Browser extensions on this machine, unpacked once and cached by the hash of their zip: a
 * directory is complete and right, or it is not there. Two sessions that need the same one share
 * a download. What is not used for a while is removed at start.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { extensionEntries } from '../proto/extension-zip.ts';
import type { ExtensionWork } from '../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../proto/rpc.ts';
import type { Clients } from '../proto/services.ts';
import { until } from './bundles.ts';

/** Ours: 100 MB over a link of 10 Mbit/s. */
const DOWNLOAD_TIMEOUT_MS = 120_000;
/** Source: blobs.proto. */
const ZIP_MAX_BYTES = 100 << 20;
/** Ours: it can be downloaded again. */
const UNUSED_MS = 7 * 24 * 3_600_000;
const SHA256 = /^[0-9a-f]{64}$/;
const ASIDE = '.part';
const RM = { recursive: true, force: true } as const;

export type Extensions = {
  /** The directory that Chrome loads. Throws when it cannot be had. */
  get(wanted: ExtensionWork, signal: AbortSignal): Promise<string>;
};

export async function openExtensions(options: {
  dir: string;
  clients: Pick<Clients, 'blobs'>;
  call: CallOptions;
  now: () => number;
}): Promise<Extensions> {
  const { dir, clients, call, now } = options;
  await mkdir(dir, { recursive: true });
  await removeOld(dir, now() - UNUSED_MS);
  const underWay = new Map<string, Promise<string>>();

  const make = async ({ blobId, sha256 }: ExtensionWork): Promise<string> => {
    const path = join(dir, sha256);
    if (await touch(path, now())) return path;
    const aside = join(dir, `${randomUUID()}${ASIDE}`);
    try {
      await mkdir(aside);
      const zip = join(aside, 'zip');
      const parts = clients.blobs.readBlob({ blobId }, { ...call, timeoutMs: DOWNLOAD_TIMEOUT_MS });
      const hash = createHash('sha256');
      await pipeline(bytesOf(parts, hash), createWriteStream(zip));
      if (hash.digest('hex') !== sha256)
        throw new Error('an extension of other bytes than its hash');
      await unpack(zip, join(aside, 'unpacked'));
      await rename(join(aside, 'unpacked'), path);
      await touch(path, now());
    } finally {
      await rm(aside, RM);
    }
    return path;
  };

  return {
    async get(wanted, signal) {
      const { sha256 } = wanted;
      if (!SHA256.test(sha256)) throw new Error('an extension without a hash');
      let made = underWay.get(sha256);
      if (made === undefined) {
        made = make(wanted).finally(() => underWay.delete(sha256));
        underWay.set(sha256, made);
      }
      return await until(made, signal);
    },
  };
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

async function* bytesOf(
  parts: AsyncIterable<{ chunk: Uint8Array }>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const { chunk } of parts) {
    bytes += chunk.length;
    if (bytes > ZIP_MAX_BYTES) throw new Error('an extension of more than 100 MiB');
    hash.update(chunk);
    yield chunk;
  }
}

/** Says that it was used; false when it is not there. */
async function touch(path: string, now: number): Promise<boolean> {
  try {
    await utimes(path, now / 1_000, now / 1_000);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

async function removeOld(dir: string, before: number): Promise<void> {
  for (const name of await readdir(dir)) {
    const path = join(dir, name);
    const { mtimeMs } = await stat(path);
    if (name.endsWith(ASIDE) || mtimeMs < before) await rm(path, RM);
  }
}
