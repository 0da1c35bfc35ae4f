/** Makes tars and seals by hand, right or wrong in one place: for the tests of profiles. */
import {
  constants,
  createCipheriv,
  createHmac,
  generateKeyPairSync,
  publicEncrypt,
  randomBytes,
} from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';

export const PAIR = newPair();
export const OTHER = newPair();

function newPair() {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

export type Part = {
  path: string;
  type?: string;
  body?: string | Buffer;
  mode?: number;
  link?: string;
  /** The size in the header; by default that of the body. */
  size?: number;
};

/** A ustar archive of the parts, with its end. */
export function tarOf(parts: readonly Part[], end = Buffer.alloc(1024)): Buffer {
  return Buffer.concat([...parts.flatMap(blocksOf), end]);
}

function blocksOf({ path, type = '0', body = '', mode = 0o644, link = '', size }: Part): Buffer[] {
  const bytes = Buffer.from(body);
  const header = Buffer.alloc(512);
  header.write(path, 0, 100);
  header.write(`${mode.toString(8).padStart(7, '0')}\0`, 100);
  header.write(`${(size ?? bytes.length).toString(8).padStart(11, '0')}\0`, 124);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(link, 157, 100);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
}

/** One record of a pax header. */
export function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest) + 1;
  while (String(length).length + Buffer.byteLength(rest) !== length) length += 1;
  return `${length}${rest}`;
}

export type Wrong = {
  magic?: string;
  version?: number;
  wrapped?: Buffer;
  iv?: Buffer;
  /** Instead of zstd of the tar. */
  packed?: Buffer;
  /** Instead of the ciphertext. */
  body?: Buffer;
  hasPadding?: boolean;
};

/** The stored form, written down a second time from its description. */
export function sealedByHand(tar: Buffer, wrong: Wrong = {}): Buffer {
  const keys = randomBytes(64);
  const iv = wrong.iv ?? randomBytes(16);
  const padding = constants.RSA_PKCS1_OAEP_PADDING;
  const wrapped =
    wrong.wrapped ?? publicEncrypt({ key: PAIR.publicKey, padding, oaepHash: 'sha256' }, keys);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(wrapped.length);
  const cipher = createCipheriv('aes-256-cbc', keys.subarray(0, 32), iv);
  cipher.setAutoPadding(wrong.hasPadding ?? true);
  const packed = wrong.packed ?? zstdCompressSync(tar);
  const body = wrong.body ?? Buffer.concat([cipher.update(packed), cipher.final()]);
  const head = Buffer.from(`${wrong.magic ?? 'TBCX'}${String.fromCharCode(wrong.version ?? 1)}`);
  const all = Buffer.concat([head, length, wrapped, iv, body]);
  return Buffer.concat([all, createHmac('sha256', keys.subarray(32)).update(all).digest()]);
}
