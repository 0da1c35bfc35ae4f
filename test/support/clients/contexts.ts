/** User-data directories in the form that clients upload: encrypted for a context's public key. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sealProfile } from '../../../proto/archives/context-writer.ts';
import { type Part, tarOf } from '../../proto/archives/sealed.ts';
import { tempDirectory } from '../temp.ts';

/** The stored form of a directory with these entries. */
export async function sealed(publicKey: string, parts: readonly Part[]): Promise<Buffer> {
  await using dir = tempDirectory();
  const path = join(dir.path, 'sealed');
  await sealProfile(once(tarOf(parts)), publicKey, path);
  return readFileSync(path);
}

/** The stored form of a directory whose only file holds the text. */
export function sealedText(publicKey: string, text: string): Promise<Buffer> {
  return sealed(publicKey, [
    { path: 'Default/', type: '5' },
    { path: 'Default/Cookies', body: text },
  ]);
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}
