/**
 * The stored form of a context's user-data directory, layout version 1:
 *
 *   magic "TBCX" (4) | version 1 (1) | length of the wrapped keys, big-endian (2)
 *   | RSA-OAEP-SHA256 of 64 random bytes: key of AES-256, key of HMAC (32 each) | IV (16)
 *   | AES-256-CBC, PKCS7, of zstd of a tar | HMAC-SHA-256 of everything before it (32)
 *
 * This file reads and writes the head. Keys that do not unwrap become random ones: such a file
 * takes the same path, and the same time, as one with a wrong MAC.
 */
import {
  constants,
  createPrivateKey,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
} from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

const MAGIC = Buffer.from('TBCX\x01', 'latin1');
export const KEY_BYTES = 32;
export const IV_BYTES = 16;
export const MAC_BYTES = 32;
/** Of RSA with 8192 bits. Ours: a context's own key is smaller. */
const WRAPPED_MAX_BYTES = 1_024;
const PREFIX_BYTES = MAGIC.length + 2;
/** Enough of a file for the keys and the IV; less when the file is shorter. */
export const PROFILE_HEAD_BYTES = PREFIX_BYTES + WRAPPED_MAX_BYTES + IV_BYTES;
const OAEP = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' } as const;

/** A head with keys wrapped for the public key. */
export function headFor(keys: Uint8Array, iv: Uint8Array, publicKeyPem: string): Buffer {
  const wrapped = publicEncrypt({ key: publicKeyPem, ...OAEP }, keys);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(wrapped.length);
  return Buffer.concat([MAGIC, length, wrapped, iv]);
}

/**
 * Unwraps the 64 bytes in the head of a file with the private key. Does not report failures: it
 * then returns random bytes, under which no MAC is valid. Blocks the calling thread for a
 * millisecond.
 */
export function unwrapKeys(head: Uint8Array, privateKeyPem: string): Buffer {
  const key = createPrivateKey(privateKeyPem);
  const modulusBytes = (key.asymmetricKeyDetails?.modulusLength ?? 0) / 8;
  const { wrapped } = layoutOf(Buffer.from(head));
  const isRight = wrapped?.length === modulusBytes;
  const decoy = randomBytes(2 * KEY_BYTES);
  try {
    const keys = privateDecrypt({ key, ...OAEP }, isRight ? wrapped : Buffer.alloc(modulusBytes));
    return keys.length === 2 * KEY_BYTES ? keys : decoy;
  } catch {
    return decoy; // the cause would be a padding oracle
  }
}

/** The first bytes of a file, for unwrapKeys. */
export async function readHead(path: string): Promise<Buffer> {
  await using file = await open(path);
  return headOf(file);
}

export async function headOf(file: FileHandle): Promise<Buffer> {
  const head = Buffer.alloc(PROFILE_HEAD_BYTES);
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return head.subarray(0, bytesRead);
}

/** Positions in a head; without `wrapped` and `iv` when the head is invalid. */
export function layoutOf(head: Buffer): { wrapped?: Buffer; iv?: Buffer; bytes: number } {
  if (head.length < PREFIX_BYTES || !head.subarray(0, MAGIC.length).equals(MAGIC)) {
    return { bytes: 0 };
  }
  const ivAt = PREFIX_BYTES + head.readUInt16BE(MAGIC.length);
  const bytes = ivAt + IV_BYTES;
  if (bytes > head.length) return { bytes: 0 };
  return { wrapped: head.subarray(PREFIX_BYTES, ivAt), iv: head.subarray(ivAt, bytes), bytes };
}
