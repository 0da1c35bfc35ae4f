/**
 * The format of a backup: one tar that any tar program reads, with these files in this order:
 *   tabern-backup.json   the contents, with the database's hash (Manifest)
 *   tabern.db            the database
 *   blobs/<id>           every blob of the database, which contains their hashes
 *   keys/master.key      on request only
 */
import { createReadStream } from 'node:fs';

export const FORMAT = 'tabern-backup-1';
export const MANIFEST = 'tabern-backup.json';

export const MASTER_KEY = 'keys/master.key';

export type Manifest = {
  format: typeof FORMAT;
  /** Version of the tabern that wrote it. */
  version: string;
  /** ISO 8601. */
  createdAt: string;
  database: { size: number; sha256: string };
  blobs: number;
  /** Blobs of the database whose files were missing or damaged. */
  missing: string[];
  hasMasterKey: boolean;
  /** `s3://bucket/prefix`, which has the blobs: none is in the backup. */
  bucket?: string;
};

export type Member = { path: string; size: number; body: () => AsyncIterable<Uint8Array> };

const BLOCK_BYTES = 512;
const MODE = 0o600;
/** In bytes: from here on a size exceeds eleven octal digits. */
const OCTAL_MAX = 8 ** 11;

export function fileMember(path: string, size: number, from: string): Member {
  return { path, size, body: () => createReadStream(from) };
}

export function textMember(path: string, text: string): Member {
  const bytes = Buffer.from(text);
  return {
    path,
    size: bytes.length,
    async *body() {
      yield bytes;
    },
  };
}

/** In bytes: the length of the members' tar. */
export function sizeOf(members: readonly Member[]): number {
  const padded = (size: number) => Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  const all = members.reduce((sum, { size }) => sum + BLOCK_BYTES + padded(size), 0);
  return all + 2 * BLOCK_BYTES;
}

/** The members as a tar. Throws when a member's length differs from its `size`. */
export async function* tarOf(members: readonly Member[], at: number): AsyncGenerator<Buffer> {
  for (const { path, size, body } of members) {
    yield header(path, size, at);
    let left = size;
    for await (const part of body()) {
      left -= part.length;
      yield Buffer.from(part.buffer, part.byteOffset, part.byteLength);
    }
    if (left !== 0) throw new Error(`${path} has changed while it was read`);
    yield Buffer.alloc(-size & (BLOCK_BYTES - 1));
  }
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

/** In POSIX format; a huge size as GNU tar writes it. */
function header(path: string, size: number, at: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, offset: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, 'latin1');
  block.write(path, 0, 'utf8');
  octal(MODE, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  if (size < OCTAL_MAX) octal(size, 124, 12);
  else {
    block[124] = 0x80;
    block.writeUIntBE(size, 130, 6);
  }
  octal(Math.floor(at / 1_000), 136, 12);
  block.write('        0', 148, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
