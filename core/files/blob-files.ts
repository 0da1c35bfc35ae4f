/**
 * Blobs as files: written aside, synced, renamed into place, so that a name means whole bytes on
 * disk. Files that are being written have names of their own; what a dead process left of them is
 * removed at start.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory } from '../../proto/common/durable.ts';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { checkedBytes, isDamage, type Stored } from './checked-bytes.ts';

/** In bytes: what one message of ReadBlob carries at most. Source: blobs.proto. */
const CHUNK_BYTES = 64 << 10;
const ASIDE = '.part';
/** A file without a row may be one whose row is being written: younger ones are left alone. */
const ORPHAN_AGE_MS = 3_600_000;
/** Names asked for in one operation. */
const BATCH = 500;

/** Ids that are remembered as whole: some MB of memory. Ours. */
const CHECKED_MAX = 20_000;
export const DAMAGED = 'a stored file is damaged: restore it from a backup';

export type Written = { size: number; sha256: string };

export type BlobFiles = {
  /**
   * Stores the bytes under the id. Throws BODY_TOO_LARGE past `maxBytes`, and keeps nothing then.
   */
  write(id: string, parts: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Written>;
  /** Throws DATA_CORRUPT, and logs it, in the place of the last bytes of a damaged file. */
  read(blob: Stored): AsyncIterable<Buffer>;
  /**
   * Bytes from `start` up to and without `end`, which must be after it. The whole file is checked
   * at the first range in a process: it is damaged as in `read`, or no byte comes out.
   */
  readRange(blob: Stored, start: number, end: number): AsyncIterable<Buffer>;
  /** Where it is, for those who read it in their own way. */
  path(id: string): string;
  remove(id: string): Promise<void>;
  /** Until it is disposed, nothing is removed: what was to be goes then. */
  hold(): AsyncDisposable;
};

/** Opens the folder; it is made when missing. */
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
 * Removes old files that `known` does not know; answers how many. One that is being written is its
 * writer's; what a writer left when it was killed goes at the next start.
 */
export async function sweepBlobFiles(
  folder: string,
  options: {
    known: (ids: string[]) => Promise<string[]>;
    remove: (id: string) => Promise<void>;
    /** The machine's time, as times of files are. */
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

/** A rename is on disk when its folder is. */
async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r');
  await handle.sync();
}
