/** Zips as archivers write them, and invalid ones. */
import { buffer } from 'node:stream/consumers';
import yazl from 'yazl';

export type ZipFileText = string | Buffer | { text: string; mode: number };

/** A zip of these files, in this order; a name that ends in `/` is a directory. */
export async function zipOf(files: Readonly<Record<string, ZipFileText>>): Promise<Buffer> {
  const zip = new yazl.ZipFile();
  for (const [path, file] of Object.entries(files)) {
    if (path.endsWith('/')) {
      zip.addEmptyDirectory(path);
    } else if (typeof file === 'object' && 'mode' in file) {
      zip.addBuffer(Buffer.from(file.text), path, { mode: file.mode });
    } else {
      zip.addBuffer(Buffer.from(file), path);
    }
  }
  zip.end();
  return buffer(zip.outputStream);
}

/** The zip with each `from` in it written over by `to`, which is as long. */
export function patched(zip: Buffer, from: string, to: string): Buffer {
  if (from.length !== to.length) throw new RangeError('a patch must be as long as what it covers');
  return Buffer.from(zip.toString('latin1').replaceAll(from, to), 'latin1');
}

/** The required members of an extension's manifest, and more. */
export function manifest(more: Record<string, unknown> = {}): string {
  return JSON.stringify({ manifest_version: 3, name: 'test', version: '1.0', ...more });
}
