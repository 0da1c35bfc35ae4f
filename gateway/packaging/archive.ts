/**
 * The files of the executable as two assets: an index, which every start reads, and one compressed
 * stream of all contents in the index's order, which the first start unpacks.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** `size` is in bytes. */
export type Entry = { path: string; size: number; isProgram: boolean };
export type Index = {
  version: string;
  /** Hash of all files: another tree is unpacked to another directory. Lower-case hex. */
  hash: string;
  entries: Entry[];
};

/** At this level Node's zlib compresses 100 MB in 2 s; level 19 takes 40 s and saves a tenth. */
const LEVEL = 9;
const HASH_CHARS = 16;

type Source = { path: string; from: string; isProgram: boolean };

/** `node` is the Node version that runs the tree; it is part of the hash. */
export function pack(sources: readonly Source[], about: { version: string; node: string }) {
  const contents = sources.map(({ from }) => readFileSync(from));
  const entries = sources.map(({ path, isProgram }, index) => {
    return { path, size: contents[index]?.byteLength ?? 0, isProgram };
  });
  const whole = Buffer.concat(contents);
  const params = { [constants.ZSTD_c_compressionLevel]: LEVEL };
  const hash = createHash('sha256')
    .update(JSON.stringify([about, entries]))
    .update(whole);
  const index: Index = {
    version: about.version,
    hash: hash.digest('hex').slice(0, HASH_CHARS),
    entries,
  };
  return { index, bytes: whole.byteLength, archive: zstdCompressSync(whole, { params }) };
}

/**
 * Unpacks into the new directory `dir`. All users may read the files: they are not secret, and
 * sandboxes read them under another uid.
 */
export function unpack(dir: string, { entries }: Index, archive: Uint8Array): void {
  const whole = zstdDecompressSync(archive);
  const made = new Set<string>();
  let offset = 0;
  for (const { path, size, isProgram } of entries) {
    const to = join(dir, path);
    if (!made.has(dirname(to))) mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
    made.add(dirname(to));
    const mode = isProgram ? 0o755 : 0o644;
    writeFileSync(to, whole.subarray(offset, offset + size), { flag: 'wx', mode });
    offset += size;
  }
}
