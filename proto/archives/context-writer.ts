/**
 * Encrypts a tar as the stored form of a context (context-format.ts), as a stream: memory use is
 * constant.
 */
import { createCipheriv, createHmac, randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createZstdCompress, constants as zlib } from 'node:zlib';
import { Fault } from '../rpc/errors.ts';
import { PROFILE_LIMITS, type ProfileLimits } from './context-entries.ts';
import { headFor, IV_BYTES, KEY_BYTES, MAC_BYTES } from './context-format.ts';

const CHUNK_BYTES = 128 << 10;
/** Level 3 takes 1.7 times as long and saves 0.3 % (test/bench/context.ts). */
const params = { [zlib.ZSTD_c_compressionLevel]: 1 };

/**
 * Encrypts a tar into a new file with fresh keys. Throws BODY_TOO_LARGE beyond the limits; removes
 * the file after a failure.
 */
export async function sealProfile(
  tar: AsyncIterable<Uint8Array>,
  publicKeyPem: string,
  path: string,
  { signal, limits = PROFILE_LIMITS }: { signal?: AbortSignal; limits?: ProfileLimits } = {},
): Promise<void> {
  const keys = randomBytes(2 * KEY_BYTES);
  const iv = randomBytes(IV_BYTES);
  const head = headFor(keys, iv, publicKeyPem);
  const mac = createHmac('sha256', keys.subarray(KEY_BYTES));
  async function* framed(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    mac.update(head);
    yield head;
    let bytes = head.length + MAC_BYTES;
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > limits.packedMaxBytes) throw tooLarge('packed', limits.packedMaxBytes);
      mac.update(chunk);
      yield chunk;
    }
    yield mac.digest();
  }
  try {
    await pipeline(
      inChunks(tar, limits.unpackedMaxBytes),
      createZstdCompress({ chunkSize: CHUNK_BYTES, params }),
      createCipheriv('aes-256-cbc', keys.subarray(0, KEY_BYTES), iv),
      framed,
      createWriteStream(path, { flags: 'wx', mode: 0o600 }),
      signal === undefined ? {} : { signal },
    );
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') await rm(path, { force: true });
    throw error;
  }
}

/**
 * A tar arrives in blocks of 512 bytes; batched, since each chunk is passed to the compression
 * thread.
 */
async function* inChunks(
  tar: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let bytes = 0;
  for await (const part of tar) {
    bytes += part.length;
    if (bytes > maxBytes) throw tooLarge('unpacked', maxBytes);
    held.push(part);
    heldBytes += part.length;
    if (heldBytes < CHUNK_BYTES) continue;
    yield held.length === 1 ? part : Buffer.concat(held);
    held = [];
    heldBytes = 0;
  }
  if (heldBytes > 0) yield Buffer.concat(held);
}

function tooLarge(what: string, limitBytes: number): Fault {
  const message = `The user-data directory has more than ${limitBytes} bytes ${what}.`;
  return new Fault('BODY_TOO_LARGE', message, { limitBytes });
}
