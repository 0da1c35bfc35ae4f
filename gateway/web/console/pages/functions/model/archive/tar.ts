/** Writes a gzip tar (POSIX ustar, pax for long names) of files, as the service takes it. */

export type ProjectFile = { name: string; bytes: Uint8Array<ArrayBuffer> };

const BLOCK = 512;
const NAME_BYTES = 100;
/** The service's limit of an archive, in bytes. */
export const ARCHIVE_MAX_BYTES = 25 << 20;

const utf8 = new TextEncoder();

/** Throws an Error with a sentence for a person when the archive is too large. */
export async function packed(files: readonly ProjectFile[]): Promise<Blob> {
  const plain = new Blob(files.flatMap(partsOf).concat(new Uint8Array(2 * BLOCK)));
  const stream = plain.stream().pipeThrough(new CompressionStream('gzip') as never);
  const archive = await new Response(stream as never).blob();
  if (archive.size > ARCHIVE_MAX_BYTES) {
    throw new Error(`the project packs to more than ${ARCHIVE_MAX_BYTES >> 20} MiB`);
  }
  return archive;
}

/** Header, content and padding; a long name has an entry of its own in front. */
function partsOf({ name, bytes }: ProjectFile): Uint8Array<ArrayBuffer>[] {
  const path = utf8.encode(name);
  const isShort = path.length <= NAME_BYTES && path.length === name.length;
  const content = [header(path.subarray(0, NAME_BYTES), bytes.length, '0'), ...padded(bytes)];
  if (isShort) return content;
  const record = recordOf(name);
  return [header(utf8.encode('pax'), record.length, 'x'), ...padded(record), ...content];
}

/** `<length> path=<name>\n`, whose length counts its own digits. */
function recordOf(name: string): Uint8Array<ArrayBuffer> {
  const rest = utf8.encode(` path=${name}\n`).length;
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return utf8.encode(`${length} path=${name}\n`);
}

function header(path: Uint8Array, size: number, type: '0' | 'x'): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const put = (text: string, at: number) => block.set(utf8.encode(text), at);
  block.set(path);
  put('0000644\0', 100);
  put('0000000\0', 108);
  put('0000000\0', 116);
  put(`${size.toString(8).padStart(11, '0')}\0`, 124);
  put('00000000000\0', 136);
  put(' '.repeat(8), 148); // counted as spaces in the checksum
  put(type, 156);
  put('ustar\0', 257);
  put('00', 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function padded(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>[] {
  const rest = bytes.length % BLOCK;
  return rest === 0 ? [bytes] : [bytes, new Uint8Array(BLOCK - rest)];
}
