/**
 * Reads the stored form of a context (context-format.ts). Guarantee: no byte is decrypted before
 * the MAC of the whole file was verified, and every defect is the same Fault, ARCHIVE_INVALID.
 * Streams throughout: memory use is constant.
 */
import { createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress, constants as zlib } from 'node:zlib';
import { Fault } from '../rpc/errors.ts';
import { PROFILE_LIMITS, type ProfileLimits, profileJudge } from './context-entries.ts';
import { headOf, KEY_BYTES, layoutOf, MAC_BYTES } from './context-format.ts';
import { readTar, type TarEntry } from './tar-reader.ts';

/** The minimum for decoders, and the need of `zstd -19`. Source: RFC 8878, 3.1.1.1.2. */
const WINDOW_LOG_MAX = 23;
const CHUNK_BYTES = 128 << 10;

export type OpenOptions = { signal?: AbortSignal; limits?: ProfileLimits };

/**
 * The tar of a file, after its MAC was verified under the keys of unwrapKeys. Throws
 * ARCHIVE_INVALID; the stream fails with it when the content is damaged or too large. Close the
 * stream.
 */
export async function openProfile(
  path: string,
  keys: Uint8Array,
  { signal, limits = PROFILE_LIMITS }: OpenOptions = {},
): Promise<Readable> {
  const file = await open(path);
  try {
    const { iv, bodyAt, bodyEnd } = await proven(file, keys, limits);
    signal?.throwIfAborted();
    const sealed = file.createReadStream({
      start: bodyAt,
      end: bodyEnd - 1,
      highWaterMark: CHUNK_BYTES,
    });
    const decipher = createDecipheriv('aes-256-cbc', keys.subarray(0, KEY_BYTES), iv);
    const unzstd = createZstdDecompress({
      chunkSize: CHUNK_BYTES,
      params: { [zlib.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX },
    });
    const out = gauge(bodyEnd - bodyAt, limits);
    // the reader of `out` receives the error, because the pipeline destroys it
    pipeline(sealed, decipher, unzstd, out, signal === undefined ? {} : { signal }).catch(() => {});
    return out;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Reads the whole file whatever its head contains: timing must not reveal the defect. */
async function proven(file: FileHandle, keys: Uint8Array, limits: ProfileLimits) {
  const { size } = await file.stat();
  if (size > limits.packedMaxBytes) throw invalid();
  const { iv, bytes: bodyAt } = layoutOf(await headOf(file));
  const bodyEnd = Math.max(0, size - MAC_BYTES);
  const mac = createHmac('sha256', keys.subarray(KEY_BYTES));
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let at = 0; at < bodyEnd; ) {
    const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, bodyEnd - at), at);
    if (bytesRead === 0) throw invalid();
    mac.update(chunk.subarray(0, bytesRead));
    at += bytesRead;
  }
  const stored = Buffer.alloc(MAC_BYTES);
  await file.read(stored, 0, MAC_BYTES, bodyEnd);
  const isProven = timingSafeEqual(mac.digest(), stored);
  if (!isProven || iv === undefined || bodyEnd <= bodyAt) throw invalid();
  return { iv, bodyAt, bodyEnd };
}

/** Passes unpacked bytes within the limits, and translates all errors before it. */
function gauge(packedBytes: number, limits: ProfileLimits): Transform {
  const ratioBytes = Math.max(limits.ratioFromBytes, packedBytes * limits.ratioMax);
  const maxBytes = Math.min(limits.unpackedMaxBytes, ratioBytes);
  let bytes = 0;
  return new Transform({
    highWaterMark: 2 * CHUNK_BYTES,
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > maxBytes) done(invalid());
      else done(null, chunk);
    },
    destroy(error, done) {
      done(error === null ? null : invalid(error));
    },
  });
}

/**
 * Yields the entries of a file that context-entries.ts allows. Throws ARCHIVE_INVALID at the first
 * other entry, or the signal's reason.
 */
export async function* profileEntries(
  path: string,
  keys: Uint8Array,
  options: OpenOptions = {},
): AsyncGenerator<TarEntry & { body: AsyncGenerator<Buffer> }> {
  const judge = profileJudge(options.limits ?? PROFILE_LIMITS);
  const tar = await openProfile(path, keys, options);
  try {
    for await (const entry of readTar(tar)) {
      const body = translated(entry.body, options.signal);
      yield { ...entry, path: judge(entry), body };
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw invalid(error);
  } finally {
    tar.destroy();
  }
}

async function* translated(
  body: AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  try {
    yield* body;
  } catch (error) {
    signal?.throwIfAborted();
    throw invalid(error);
  }
}

/** Throws ARCHIVE_INVALID unless profileEntries would yield every entry. Writes nothing. */
export async function verifyProfile(
  path: string,
  keys: Uint8Array,
  options: OpenOptions = {},
): Promise<{ entries: number; bytes: number }> {
  let entries = 0;
  let bytes = 0;
  for await (const { size } of profileEntries(path, keys, options)) {
    entries += 1;
    bytes += size;
  }
  return { entries, bytes };
}

function invalid(cause?: unknown): Fault {
  if (cause instanceof Fault) return cause;
  return new Fault('ARCHIVE_INVALID', 'The archive is not valid.', {}, cause);
}
