/**
 * Reads a tar of files and directories as a stream, as needed for user-data directories. Every
 * other entry, and every byte that differs from POSIX (ustar, pax) or GNU tar, is a TarError:
 * nothing is skipped or guessed, so no two readers can interpret an archive differently. Holds one
 * block and one chunk in memory. The package `tar` writes archives but does not read them here,
 * because it continues after invalid data, detects compression by itself, and leaves files open
 * when an archive ends early.
 */

export class TarError extends Error {
  override readonly name = 'TarError';
}

export type TarEntry = {
  kind: 'file' | 'directory';
  /** As in the archive. */
  path: string;
  mode: number;
  /** In bytes; 0 of a directory. */
  size: number;
};

type Header = TarEntry & { type: string };

const BLOCK_BYTES = 512;
/** Of a pax header or a long name. Ours: a path has at most 4,096 bytes. */
const META_MAX_BYTES = 64 << 10;
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Yields each entry with its bytes, in order. Read the bytes before the next entry, or not at all.
 */
export async function* readTar(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<TarEntry & { body: AsyncGenerator<Buffer> }> {
  const bytes = byteReader(chunks);
  let longPath: string | undefined;
  let pax: Map<string, string> | undefined;
  for (;;) {
    const block = await bytes.take(BLOCK_BYTES);
    if (isZero(block)) break;
    const header = headerOf(block);
    switch (header.type) {
      case 'x':
        pax = paxOf(await metaOf(bytes, header));
        break;
      case 'g':
        await metaOf(bytes, header); // of the whole archive: a comment, never a path
        break;
      case 'L':
        longPath = textOf(await metaOf(bytes, header)).replace(/\0+$/, '');
        break;
      case '0':
      case '5': {
        const entry = entryOf(header, pax, longPath);
        const body = bytes.body(entry.size);
        yield { ...entry, body };
        for await (const _ of body); // the bytes that the caller did not read
        await bytes.take(padding(entry.size));
        pax = longPath = undefined;
        break;
      }
      default:
        throw new TarError('neither a file nor a directory');
    }
  }
  if (pax !== undefined || longPath !== undefined) throw new TarError('a name without an entry');
  if (!isZero(await bytes.take(BLOCK_BYTES))) throw new TarError('no end');
  for await (const rest of bytes.rest()) if (!isZero(rest)) throw new TarError('more than an end');
}

function entryOf(header: Header, pax?: Map<string, string>, longPath?: string): TarEntry {
  const { type, mode } = header;
  const path = pax?.get('path') ?? longPath ?? header.path;
  const paxSize = pax?.get('size');
  if (paxSize !== undefined && !/^\d{1,15}$/.test(paxSize)) {
    throw new TarError('a size of no bytes');
  }
  const size = paxSize === undefined ? header.size : Number(paxSize);
  // before POSIX, directories were files whose name ends with a slash
  const isDirectory = type === '5' || path.endsWith('/');
  if (isDirectory && size !== 0) throw new TarError('a directory with bytes');
  return { kind: isDirectory ? 'directory' : 'file', path, mode, size };
}

// --- headers ---

function headerOf(block: Buffer): Header {
  let sum = 8 * 0x20; // the checksum's own field counts as spaces
  for (let at = 0; at < BLOCK_BYTES; at++) {
    if (at < 148 || at >= 156) sum += block[at] ?? 0;
  }
  if (numberAt(block, 148, 8) !== sum) throw new TarError('a wrong checksum');
  const name = fieldAt(block, 0, 100);
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? fieldAt(block, 345, 155) : '';
  const flag = block[156] ?? 0;
  return {
    type: flag === 0 ? '0' : String.fromCharCode(flag),
    kind: 'file',
    path: prefix === '' ? name : `${prefix}/${name}`,
    mode: numberAt(block, 100, 8),
    size: numberAt(block, 124, 12),
  };
}

function fieldAt(block: Buffer, start: number, length: number): string {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return textOf(end === -1 ? field : field.subarray(0, end));
}

/** Octal digits, or GNU's big-endian binary when the first bit is set. */
function numberAt(block: Buffer, start: number, length: number): number {
  if (block[start] === 0x80) {
    if (!isZero(block.subarray(start + 1, start + length - 6))) throw new TarError('a huge number');
    return block.readUIntBE(start + length - 6, 6);
  }
  const text = block.toString('latin1', start, start + length).replace(/[\0 ]+$/, '');
  if (!/^ *[0-7]*$/.test(text)) throw new TarError('not a number');
  return Number.parseInt(text.trim() || '0', 8);
}

async function metaOf(bytes: ByteReader, { size }: Header): Promise<Buffer> {
  if (size === 0 || size > META_MAX_BYTES) throw new TarError('a header too large');
  const meta = Buffer.from(await bytes.take(size));
  await bytes.take(padding(size));
  return meta;
}

/** Records of `<length> <key>=<value>\n`. */
function paxOf(meta: Buffer): Map<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < meta.length; ) {
    const space = meta.indexOf(0x20, at);
    const length = /^[1-9]\d{0,5}$/.exec(meta.toString('latin1', at, space))?.[0];
    const end = at + Number(length);
    if (space === -1 || length === undefined || end > meta.length || meta[end - 1] !== 0x0a) {
      throw new TarError('a damaged header');
    }
    const record = meta.subarray(space + 1, end - 1);
    const equals = record.indexOf('=');
    const key = record.toString('latin1', 0, Math.max(0, equals));
    if (equals < 1 || found.has(key)) throw new TarError('a damaged header');
    if (key.startsWith('GNU.sparse')) throw new TarError('neither a file nor a directory');
    // others are attributes with arbitrary bytes, which are ignored
    if (key === 'path' || key === 'size') found.set(key, textOf(record.subarray(equals + 1)));
    at = end;
  }
  return found;
}

function textOf(bytes: Buffer): string {
  try {
    return UTF8.decode(bytes);
  } catch (cause) {
    throw new TarError('a name that is not UTF-8', { cause });
  }
}

// --- bytes ---

type ByteReader = {
  /** Exactly this many bytes, in memory. */
  take(count: number): Promise<Buffer>;
  /** Exactly this many bytes, as a stream. */
  body(count: number): AsyncGenerator<Buffer>;
  /** The remaining bytes. */
  rest(): AsyncGenerator<Buffer>;
};

function byteReader(chunks: AsyncIterable<Buffer>): ByteReader {
  const source = chunks[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);

  /** The buffered bytes, at most this many; undefined at the end. */
  const some = async (max: number): Promise<Buffer | undefined> => {
    while (held.length === 0) {
      const { done, value } = await source.next();
      if (done) return undefined;
      held = value;
    }
    const part = held.subarray(0, max);
    held = held.subarray(part.length);
    return part;
  };
  async function* body(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      const part = await some(left);
      if (part === undefined) throw new TarError('ends early');
      left -= part.length;
      yield part;
    }
  }
  return {
    async take(count) {
      const parts: Buffer[] = [];
      for await (const part of body(count)) parts.push(part);
      return parts.length === 1 ? (parts[0] ?? held) : Buffer.concat(parts);
    },
    body,
    async *rest() {
      for (let part = await some(Infinity); part; part = await some(Infinity)) yield part;
    },
  };
}

function padding(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0);
}
