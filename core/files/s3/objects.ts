/**
 * Blobs as objects of a bucket, named by their ids. Bytes are verified as those of files are; a
 * range is not, because the bucket has verified the hash at the upload and guards its own disks.
 * Failures of the bucket are BLOBS_UNAVAILABLE; the operator's sentence is in health.ts.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Log } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { partsOf } from '../../../proto/uploads/parts.ts';
import { isId } from '../../common/ids.ts';
import { DAMAGED } from '../blob-files.ts';
import type { Blobs, DirectUploads, ListedBlob, Upload, Written } from '../blobs.ts';
import { checked, damaged, isDamage, type Stored } from '../checked-bytes.ts';
import { isOfConnection, trying } from './attempts.ts';
import type { Bucket } from './bucket.ts';
import { isMissing, isNoUpload, isOutside, S3Error, unavailable } from './errors.ts';

/** In bytes: the chunk size of ReadBlob. Source: blobs.proto. */
const CHUNK_BYTES = 64 << 10;
/** Concurrent removals of one call. Ours. */
const REMOVALS = 4;
/** Ours: 30 million objects are 30,000 lists. */
const LIST_PERIOD_MS = 24 * 3_600_000;
/** Ours: the longest upload lasts half an hour. Parts count against no quota. */
const UPLOAD_AGE_MS = 3_600_000;

type Options = {
  bucket: Bucket;
  /** For copies of objects that are read as files. */
  spoolDir: string;
  log: Log;
};

export async function openObjects({ bucket, spoolDir, log }: Options): Promise<Blobs> {
  // of a process that was killed
  await rm(spoolDir, { recursive: true, force: true });
  await mkdir(spoolDir, { mode: 0o700 });
  const { prefix } = bucket.place;
  const keyOf = (id: string) => prefix + id;

  async function* read(blob: Stored): AsyncGenerator<Buffer> {
    try {
      yield* checked(bytesOf(bucket, keyOf(blob.id)), blob);
    } catch (error) {
      const fault = lostOrUnavailable(error, blob.id);
      if (isDamage(fault)) log.error({ err: fault, blobId: blob.id }, DAMAGED);
      throw fault;
    }
  }

  async function removeOne(id: string): Promise<void> {
    await trying(() => bucket.remove(keyOf(id))).catch((error: unknown) => {
      if (isMissing(error)) return;
      log.warn({ err: error, blobId: id }, 'an object was not removed: the next sweep removes it');
    });
  }

  return {
    write: (id, parts, maxBytes) => write(bucket, keyOf(id), limited(parts, maxBytes)),
    read,
    async *readRange(blob, start, end) {
      if (start === 0 && end === blob.size) return yield* read(blob);
      let bytes = 0;
      try {
        for await (const chunk of bytesOf(bucket, keyOf(blob.id), { start, end })) {
          bytes += chunk.length;
          if (bytes > end - start) throw damaged(blob.id);
          yield chunk;
        }
      } catch (error) {
        throw lostOrUnavailable(error, blob.id);
      }
      if (bytes !== end - start) throw damaged(blob.id);
    },
    async head(id, maxBytes, signal) {
      const chunks: Buffer[] = [];
      try {
        const range = { start: 0, end: maxBytes };
        let bytes = 0;
        for await (const chunk of bytesOf(bucket, keyOf(id), range, signal)) {
          chunks.push(chunk);
          bytes += chunk.length;
          if (bytes >= maxBytes) break;
        }
      } catch (error) {
        if (!isOutside(error)) throw lostOrUnavailable(error, id);
      }
      return Buffer.concat(chunks).subarray(0, maxBytes);
    },
    async local(blob, signal) {
      const path = join(spoolDir, randomUUID());
      const remove = () => rm(path, { force: true });
      try {
        const file = createWriteStream(path, { flags: 'wx', mode: 0o600 });
        await pipeline(read(blob), file, { signal });
      } catch (error) {
        await remove();
        signal.throwIfAborted();
        throw (error as NodeJS.ErrnoException).code === 'ENOSPC' ? full(error) : error;
      }
      return { path, [Symbol.asyncDispose]: remove };
    },
    async exists(id) {
      try {
        await trying(() => bucket.sizeOf(keyOf(id)));
        return true;
      } catch (error) {
        if (isMissing(error)) return false;
        throw unavailable(error);
      }
    },
    async remove(...ids) {
      const left = [...ids];
      const work = async () => {
        for (let id = left.pop(); id !== undefined; id = left.pop()) await removeOne(id);
      };
      await Promise.all(Array.from({ length: REMOVALS }, work));
    },
    // a backup has no bytes of the bucket
    hold: () => ({ async [Symbol.asyncDispose]() {} }),
    list: () => listed(bucket),
    sweepUploads: () => sweepUploads(bucket),
    listPeriodMs: LIST_PERIOD_MS,
    direct: directUploads(bucket, keyOf),
  };
}

/** Parts are retried one by one; their bytes are in memory. */
async function write(
  bucket: Bucket,
  key: string,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Written> {
  const hash = createHash('sha256');
  const tags: string[] = [];
  let size = 0;
  let uploadId: string | undefined;
  try {
    for await (const { body, isLast } of partsOf(bytes)) {
      hash.update(body);
      size += body.length;
      if (isLast && uploadId === undefined) {
        await trying(() => bucket.put(key, body));
        break;
      }
      uploadId ??= await trying(() => bucket.beginUpload(key));
      const query = { partNumber: String(tags.length + 1), uploadId };
      tags.push(await trying(() => bucket.putPart(key, body, query)));
    }
    if (uploadId !== undefined) await complete(bucket, key, { uploadId, tags });
    return { size, sha256: hash.digest('hex') };
  } catch (error) {
    const id = uploadId;
    if (id !== undefined) await bucket.abortUpload(key, id).catch(() => undefined); // is swept
    throw error instanceof S3Error || isOfConnection(error) ? unavailable(error) : error;
  }
}

/** Repeatable: an upload that is gone may have been completed before. */
async function complete(
  bucket: Bucket,
  key: string,
  { uploadId, tags }: { uploadId: string; tags: readonly string[] },
): Promise<number> {
  try {
    await trying(() => bucket.completeUpload(key, uploadId, tags));
  } catch (error) {
    if (!isNoUpload(error)) throw error;
  }
  return await trying(() => bucket.sizeOf(key));
}

function directUploads(bucket: Bucket, keyOf: (id: string) => string): DirectUploads {
  const translated = async <T>(run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      throw unavailable(error);
    }
  };
  return {
    begin: (id) => translated(() => trying(() => bucket.beginUpload(keyOf(id)))),
    sign({ id, uploadId, number }, bytes) {
      const query = uploadId === undefined ? {} : { partNumber: String(number), uploadId };
      return bucket.signPut(keyOf(id), { ...bytes, query });
    },
    complete: ({ id, uploadId }: Upload, tags) =>
      translated(() => {
        if (uploadId !== undefined) return complete(bucket, keyOf(id), { uploadId, tags });
        return trying(() => bucket.sizeOf(keyOf(id)));
      }),
    async abort({ id, uploadId }) {
      await translated(async () => {
        if (uploadId !== undefined) await abortUpload(bucket, keyOf(id), uploadId);
        else await bucket.remove(keyOf(id)).catch(unlessMissing);
      });
    },
  };
}

/** An upload that is gone was completed or aborted. */
async function abortUpload(bucket: Bucket, key: string, uploadId: string): Promise<void> {
  await bucket.abortUpload(key, uploadId).catch((error: unknown) => {
    if (!isNoUpload(error)) throw error;
  });
}

function unlessMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}

/** Only names that are ids: the bucket may have other objects. */
async function* listed(bucket: Bucket): AsyncGenerator<ListedBlob[]> {
  const { prefix } = bucket.place;
  let after = '';
  for (;;) {
    const { items, isLast } = await trying(() => bucket.list(after));
    yield items.flatMap(({ key, ageMs }) => {
      const name = key.slice(prefix.length);
      return isId(name) ? { name, ageMs: () => ageMs } : [];
    });
    const last = items.at(-1)?.key;
    if (isLast || last === undefined) return;
    after = last;
  }
}

async function sweepUploads(bucket: Bucket): Promise<number> {
  const { prefix } = bucket.place;
  let after = { key: '', uploadId: '' };
  let aborted = 0;
  for (;;) {
    const { items, isLast } = await trying(() => bucket.listUploads(after));
    for (const { key, uploadId, ageMs } of items) {
      if (!isId(key.slice(prefix.length)) || ageMs < UPLOAD_AGE_MS) continue;
      await abortUpload(bucket, key, uploadId);
      aborted += 1;
    }
    const last = items.at(-1);
    if (isLast || last === undefined) return aborted;
    after = last;
  }
}

/** Chunks of at most CHUNK_BYTES. Fails when the bucket sends nothing for a while. */
async function* bytesOf(
  bucket: Bucket,
  key: string,
  range?: { start: number; end: number },
  signal?: AbortSignal,
): AsyncGenerator<Buffer> {
  const idle = new AbortController();
  const stop = () => idle.abort(new DOMException('the bucket sends nothing', 'TimeoutError'));
  const over = signal ? AbortSignal.any([signal, idle.signal]) : idle.signal;
  const { body } = await trying(() => bucket.get(key, range, over));
  const reader = must(body, 'the body of an object').getReader();
  try {
    for (;;) {
      const timer = setTimeout(stop, bucket.times.idleMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      for (let at = 0; at < value.length; at += CHUNK_BYTES) {
        yield Buffer.from(value.subarray(at, at + CHUNK_BYTES));
      }
    }
  } finally {
    idle.abort();
  }
}

async function* limited(
  parts: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const part of parts) {
    size += part.byteLength;
    if (size > maxBytes) {
      const message = `The upload exceeds ${maxBytes} bytes.`;
      throw new Fault('BODY_TOO_LARGE', message, { maxBytes });
    }
    yield part;
  }
}

/** Of the copies' disk. */
function full(cause: unknown): Fault {
  return new Fault('STORAGE_FULL', 'The disk is full. Retry the request later.', {}, cause);
}

function lostOrUnavailable(error: unknown, blobId: string): Fault {
  return isMissing(error) ? damaged(blobId, error) : unavailable(error);
}
