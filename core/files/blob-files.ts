/**
 * Blobs as files: written to a temporary file, synced and renamed, so that a name means complete
 * bytes on disk. Temporary files of a dead process are removed at start.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory } from '../../proto/common/durable.ts';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { checkedBytes, isDamage, type Stored } from './checked-bytes.ts';

/** In bytes: the chunk size of ReadBlob. Source: blobs.proto. */
const CHUNK_BYTES = 64 << 10;
const ASIDE = '.part';
/**
 * The row of a young file may still be written: files without a row are removed only when older.
 */
const ORPHAN_AGE_MS = 3_600_000;
/** Names per operation. */
const BATCH = 500;

/** Ids remembered as verified: some MB of memory. Ours. */
const CHECKED_MAX = 20_000;
export const DAMAGED = 'a stored file is damaged: restore it from a backup';

export type Written = { size: number; sha256: string };

export type BlobFiles = {
  /**
   * Stores the bytes under the id. Throws BODY_TOO_LARGE beyond `maxBytes`, and then stores
   * nothing.
   */
  write(id: string, parts: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Written>;
  /** For a damaged file, throws DATA_CORRUPT instead of the last bytes, and logs it. */
  read(blob: Stored): AsyncIterable<Buffer>;
  /**
   * Bytes from `start` to `end` (exclusive, greater than start). The first range in a process
   * verifies the whole file: a damaged file yields no byte and fails as in `read`.
   */
  readRange(blob: Stored, start: number, end: number): AsyncIterable<Buffer>;
  /** Path of the file, for other readers. */
  path(id: string): string;
  remove(id: string): Promise<void>;
  /** Until disposed, no file is removed; removals are delayed. */
  hold(): AsyncDisposable;
};

/** Opens the directory; creates it when missing. */
export async function openBlobFiles(folder: string, log?: Log): Promise<BlobFiles> {
  makeDirectory(folder);
  for (const name of await readdir(folder)) {
    if (name.endsWith(ASIDE)) await rm(join(folder, name), { force: true });
  }
  const held = new Set<string>();
  let holds = 0;
  const remove = async (id: string): Promise<void> => {
    if (holds > 0) held.add(id);
    else await rm(join(folder, id), { force: true });
  };
  const checked = new Set<string>();

  async function* read(blob: Stored): AsyncGenerator<Buffer> {
    try {
      yield* checkedBytes(join(folder, blob.id), blob, CHUNK_BYTES);
    } catch (error) {
      const { id: blobId } = blob;
      if (isDamage(error)) log?.error({ err: error, blobId, reason: 'DATA_CORRUPT' }, DAMAGED);
      throw error;
    }
    if (checked.size >= CHECKED_MAX) checked.clear();
    checked.add(blob.id);
  }

  return {
    async write(id, parts, maxBytes) {
      const path = join(folder, id);
      try {
        const written = await writeAside(path + ASIDE, parts, maxBytes);
        await rename(path + ASIDE, path);
        await syncFolder(folder);
        return written;
      } catch (error) {
        await rm(path + ASIDE, { force: true });
        throw error;
      }
    },
    read,
    async *readRange(blob, start, end) {
      if (!checked.has(blob.id)) for await (const _ of read(blob));
      const range = { highWaterMark: CHUNK_BYTES, start, end: end - 1 };
      yield* createReadStream(join(folder, blob.id), range) as AsyncIterable<Buffer>;
    },
    path: (id) => join(folder, id),
    remove,
    hold() {
      holds += 1;
      return {
        async [Symbol.asyncDispose]() {
          holds -= 1;
          if (holds > 0) return;
          const ids = [...held];
          held.clear();
          for (const id of ids) await remove(id);
        },
      };
    },
  };
}

/**
 * Removes old files without a row, by `known`; returns their number. Files in progress belong to
 * their writer; those of a killed writer are removed at the next start.
 */
export async function sweepBlobFiles(
  folder: string,
  options: {
    known: (ids: string[]) => Promise<string[]>;
    remove: (id: string) => Promise<void>;
    /** The machine's time, like the times of files. */
    now: number;
  },
): Promise<number> {
  const { known, remove, now } = options;
  const names = (await readdir(folder)).filter((name) => !name.endsWith(ASIDE));
  let removed = 0;
  for (let from = 0; from < names.length; from += BATCH) {
    const batch = names.slice(from, from + BATCH);
    const rows = new Set(await known(batch));
    for (const name of batch.filter((one) => !rows.has(one))) {
      const { mtimeMs } = await stat(join(folder, name));
      if (now - mtimeMs < ORPHAN_AGE_MS) continue;
      await remove(name);
      removed += 1;
    }
  }
  return removed;
}

async function writeAside(
  path: string,
  parts: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Written> {
  await using file = await open(path, 'wx', 0o600);
  const hash = createHash('sha256');
  let size = 0;
  for await (const part of parts) {
    size += part.byteLength;
    if (size > maxBytes) {
      const message = `The upload exceeds ${maxBytes} bytes.`;
      throw new Fault('BODY_TOO_LARGE', message, { maxBytes });
    }
    hash.update(part);
    await file.writeFile(part);
  }
  await file.sync();
  return { size, sha256: hash.digest('hex') };
}

/** A rename is durable after its directory was synced. */
async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}
