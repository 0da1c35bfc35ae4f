/**
 * Blobs as files: written to a temporary file, synced and renamed, so that a name means complete
 * bytes on disk. Temporary files of a dead process are removed at start.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { access, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory } from '../../proto/common/durable.ts';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Blobs, ListedBlob, Written } from './blobs.ts';
import { checkedBytes, isDamage, lostOrSame, type Stored } from './checked-bytes.ts';

/** In bytes: the chunk size of ReadBlob. Source: blobs.proto. */
const CHUNK_BYTES = 64 << 10;
/** Of a temporary file. */
export const ASIDE = '.part';
/** Ids remembered as verified: some MB of memory. Ours. */
const CHECKED_MAX = 20_000;
export const DAMAGED = 'a stored file is damaged: restore it from a backup';
/** Names of one batch of a list. */
const NAMES_BATCH = 500;

export type BlobFiles = Blobs & {
  /** Path of the file, for other readers. */
  path(id: string): string;
};

/** Opens the directory; creates it when missing. */
export async function openBlobFiles(folder: string, log?: Log): Promise<BlobFiles> {
  makeDirectory(folder);
  for (const name of await readdir(folder)) {
    if (name.endsWith(ASIDE)) await rm(join(folder, name), { force: true });
  }
  const held = new Set<string>();
  let holds = 0;
  const remove = async (...ids: string[]): Promise<void> => {
    if (holds > 0) for (const id of ids) held.add(id);
    else await Promise.all(ids.map((id) => rm(join(folder, id), { force: true })));
  };
  const checked = new Set<string>();

  /** For a damaged file, throws DATA_CORRUPT instead of the last bytes, and logs it. */
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
    /** The first range in a process verifies the whole file: a damaged one yields no byte. */
    async *readRange(blob, start, end) {
      if (!checked.has(blob.id)) for await (const _ of read(blob));
      const range = { highWaterMark: CHUNK_BYTES, start, end: end - 1 };
      yield* createReadStream(join(folder, blob.id), range) as AsyncIterable<Buffer>;
    },
    async head(id, maxBytes) {
      await using file = await open(join(folder, id)).catch((error: unknown) => {
        throw lostOrSame(error, id);
      });
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0);
      return buffer.subarray(0, bytesRead);
    },
    async local({ id }) {
      return { path: join(folder, id), async [Symbol.asyncDispose]() {} };
    },
    async exists(id) {
      return await access(join(folder, id)).then(
        () => true,
        () => false,
      );
    },
    path: (id) => join(folder, id),
    remove,
    list: () => listed(folder),
    sweepUploads: async () => 0, // those of a dead process were removed at its start
    listPeriodMs: 0,
    hold() {
      holds += 1;
      return {
        async [Symbol.asyncDispose]() {
          holds -= 1;
          if (holds > 0) return;
          const ids = [...held];
          held.clear();
          for (const id of ids) await remove(id); // a long backup may delay very many
        },
      };
    },
  };
}

/** Without files in progress, which belong to their writer. */
async function* listed(folder: string): AsyncGenerator<ListedBlob[]> {
  const names = (await readdir(folder)).filter((name) => !name.endsWith(ASIDE));
  for (let from = 0; from < names.length; from += NAMES_BATCH) {
    yield names.slice(from, from + NAMES_BATCH).map((name) => ({
      name,
      ageMs: async (wall) => wall - (await stat(join(folder, name))).mtimeMs,
    }));
  }
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
