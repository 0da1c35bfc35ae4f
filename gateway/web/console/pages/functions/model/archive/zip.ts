/**
 * Reads a zip file (APPNOTE 6.3) in the browser: stored and deflated files. It may be anyone's:
 * entries and unpacked bytes are limited, names stay within the archive, and each file is checked
 * against its CRC.
 */

export type ZipEntry = {
  name: string;
  size: number;
  isFolder: boolean;
  packedSize: number;
  crc: number;
  method: number;
  offset: number;
};

/** As the service unpacks at most. */
const ENTRIES_MAX = 20_000;
const DIRECTORY_MAX_BYTES = 16 << 20;
/** Ours: sources that pack to 25 MiB. The page holds them in memory. */
const UNPACKED_MAX_BYTES = 128 << 20;
const NAME_MAX_CHARS = 1_024;

const END = 0x06054b50;
const END_BYTES = 22;
const COMMENT_MAX_BYTES = 0xffff;
const ENTRY = 0x02014b50;
const ENTRY_BYTES = 46;
const FILE = 0x04034b50;
const FILE_BYTES = 30;
const IN_ZIP64 = 0xffffffff;
const STORED = 0;
const DEFLATED = 8;
/** Of a Unix file mode. */
const TYPE_MASK = 0xf000;
const LINK = 0xa000;

/** The entries of the central directory. Throws an Error with a sentence for a person. */
export async function zipEntries(file: Blob): Promise<ZipEntry[]> {
  const tail = await viewOf(file, Math.max(0, file.size - END_BYTES - COMMENT_MAX_BYTES));
  const end = endOf(tail);
  const count = tail.getUint16(end + 10, true);
  const size = tail.getUint32(end + 12, true);
  const start = tail.getUint32(end + 16, true);
  if (start === IN_ZIP64 || size === IN_ZIP64 || count === 0xffff) throw tooLarge();
  if (count > ENTRIES_MAX) throw new Error(`the zip has more than ${ENTRIES_MAX} files`);
  if (size > DIRECTORY_MAX_BYTES || start + size > file.size) throw broken();
  const directory = await viewOf(file, start, start + size);
  const entries: ZipEntry[] = [];
  let at = 0;
  for (let number = 0; number < count; number += 1) {
    if (at + ENTRY_BYTES > size || directory.getUint32(at, true) !== ENTRY) throw broken();
    const { entry, bytes } = entryAt(directory, at);
    entries.push(entry);
    at += bytes;
  }
  const unpacked = entries.reduce((sum, one) => sum + one.size, 0);
  if (unpacked > UNPACKED_MAX_BYTES) {
    throw new Error(`the zip unpacks to more than ${UNPACKED_MAX_BYTES >> 20} MiB`);
  }
  return entries;
}

function endOf(tail: DataView): number {
  for (let at = tail.byteLength - END_BYTES; at >= 0; at -= 1) {
    if (tail.getUint32(at, true) === END) return at;
  }
  throw new Error('this is not a zip file');
}

function entryAt(view: DataView<ArrayBuffer>, at: number): { entry: ZipEntry; bytes: number } {
  const flags = view.getUint16(at + 8, true);
  const nameBytes = view.getUint16(at + 28, true);
  const bytes =
    ENTRY_BYTES + nameBytes + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  if (at + bytes > view.byteLength) throw broken();
  const name = nameOf(new Uint8Array(view.buffer, view.byteOffset + at + ENTRY_BYTES, nameBytes));
  const entry: ZipEntry = {
    name,
    size: view.getUint32(at + 24, true),
    isFolder: name.endsWith('/'),
    packedSize: view.getUint32(at + 20, true),
    crc: view.getUint32(at + 16, true),
    method: view.getUint16(at + 10, true),
    offset: view.getUint32(at + 42, true),
  };
  const mode = view.getUint32(at + 38, true) >>> 16;
  if ((flags & 1) !== 0) throw new Error(`${name} is encrypted`);
  if ((mode & TYPE_MASK) === LINK)
    throw new Error(`${name} is a link: publish a zip without links`);
  if (entry.method !== STORED && entry.method !== DEFLATED) {
    throw new Error(`${name} is packed by a method that is not supported`);
  }
  if ([entry.size, entry.packedSize, entry.offset].includes(IN_ZIP64)) throw tooLarge();
  return { entry, bytes };
}

/** Windows writes backslashes. Throws for a name that leads out of the archive. */
function nameOf(bytes: Uint8Array<ArrayBuffer>): string {
  const name = new TextDecoder()
    .decode(bytes)
    .replaceAll('\\', '/')
    .replace(/^(?:\.\/)+/, '');
  const isOutside =
    name.startsWith('/') || /^[A-Za-z]:/.test(name) || name.split('/').includes('..');
  if (name === '' || name.length > NAME_MAX_CHARS || name.includes('\0') || isOutside) {
    throw new Error(`the zip has a name that is not allowed: ${name.slice(0, 80)}`);
  }
  return name;
}

/** The bytes of one file. Throws when they are not those that the directory describes. */
export async function zipBytes(file: Blob, entry: ZipEntry): Promise<Uint8Array<ArrayBuffer>> {
  const { name, offset, packedSize, method, size, crc } = entry;
  const head = await viewOf(file, offset, offset + FILE_BYTES);
  if (head.byteLength < FILE_BYTES || head.getUint32(0, true) !== FILE) throw broken();
  const start = offset + FILE_BYTES + head.getUint16(26, true) + head.getUint16(28, true);
  const packed = file.slice(start, start + packedSize);
  const bytes = await unpacked(packed, method, size).catch(() => undefined);
  if (bytes?.length !== size || crcOf(bytes) !== crc) throw new Error(`${name} is damaged`);
  return bytes;
}

/** At most `max` bytes, and one more where there are more. */
async function unpacked(packed: Blob, method: number, max: number) {
  const stream: ReadableStream<Uint8Array> = packed.stream();
  const plain =
    method === STORED
      ? stream
      : stream.pipeThrough(new DecompressionStream('deflate-raw') as never);
  const bytes = new Uint8Array(max + 1);
  let at = 0;
  const reader = (plain as ReadableStream<Uint8Array>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > max) {
      await reader.cancel();
      return bytes;
    }
    bytes.set(value, at);
    at += value.length;
  }
  return bytes.subarray(0, at);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

export function crcOf(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (TABLE[(crc ^ byte) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

async function viewOf(file: Blob, from: number, to = file.size): Promise<DataView<ArrayBuffer>> {
  return new DataView(await file.slice(from, to).arrayBuffer());
}

function broken(): Error {
  return new Error('the zip is damaged');
}

function tooLarge(): Error {
  return new Error('the zip is too large: zip64 is not supported');
}
