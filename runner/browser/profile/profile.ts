/**
 * Packs and unpacks a user-data directory in the stored form of a context. Caches and remains of a
 * crash are excluded both ways: a profile that was locked or dirty starts cleanly, whatever packed
 * it. `Last Version` is kept: a newer Chrome migrates by it.
 */
import { writeFile } from 'node:fs';
import { chmod, mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PROFILE_LIMITS } from '../../../proto/archives/context-entries.ts';
import { type OpenOptions, profileEntries } from '../../../proto/archives/context-reader.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { removeTree } from '../../common/remove.ts';
import { packDirectory } from './tar-writer.ts';

/**
 * Names of files and directories at any depth. Of a profile of 64 MB, caches are 56. An exclude
 * list, so that new stores of Chrome are kept.
 */
const LEFT_OUT = new Set([
  'Cache',
  'Code Cache',
  'GPUCache',
  'ShaderCache',
  'GrShaderCache',
  'GraphiteDawnCache',
  'GPUPersistentCache',
  'component_crx_cache',
  'extensions_crx_cache',
  'Crashpad',
  'Crash Reports',
  'segmentation_platform',
  'Safe Browsing',
  'blob_storage',
  'DevToolsActivePort',
  'LOCK',
  'LOG',
  'LOG.old',
  'Local State.bad', // renamed by headless-shell
  'NativeMessagingHosts', // lists programs that an extension may start
  'External Extensions', // lists extensions that Chrome installs by itself
  'lockfile', // Chrome's lock on Windows
]);
/** Temporary files, locks of a live or killed Chrome, files of zeros for metrics. */
const LEFT_OUT_LIKE = [
  /^Singleton/,
  /^Dawn.*Cache$/,
  /^optimization_guide/,
  /^BrowserMetrics/,
  /^\.(?:org|com)\./,
  /\.(?:tmp|pma)$/,
];
/** Files up to this size are written whole, several at once. */
const SMALL_MAX_BYTES = 256 << 10;
const WRITES_MAX = 16;

/**
 * A tar of the directory, which must not change meanwhile. Throws BODY_TOO_LARGE above the limits.
 */
export function packProfile(dir: string): AsyncIterable<Buffer> {
  const { entriesMax: limit } = PROFILE_LIMITS;
  const tooMany = `The user-data directory has more than ${limit} files.`;
  let entries = 0;
  return packDirectory(dir, (path) => {
    if (isLeftOut(path)) return false;
    entries += 1;
    if (entries > limit) throw new Fault('BODY_TOO_LARGE', tooMany, { limit });
    return true;
  });
}

/**
 * Writes the profile of a sealed file into a new directory, 0700 and 0600. Throws ARCHIVE_INVALID;
 * after a failure no directory is left.
 */
export async function unpackProfile(
  sealed: { path: string; keys: Uint8Array },
  dir: string,
  options: OpenOptions = {},
): Promise<void> {
  await mkdir(dir, { mode: 0o700 });
  const writes = new Set<Promise<void>>();
  try {
    const made = new Set<string>(['.']);
    const directory = async (path: string): Promise<void> => {
      if (made.has(path)) return;
      await mkdir(join(dir, path), { recursive: true, mode: 0o700 });
      made.add(path);
    };
    const entries = profileEntries(sealed.path, sealed.keys, options);
    for await (const { kind, path, size, body } of entries) {
      if (path === '' || isLeftOut(path)) continue;
      await directory(kind === 'directory' ? path : dirname(path));
      if (kind === 'directory') continue;
      if (size > SMALL_MAX_BYTES) {
        await writeLarge(join(dir, path), body);
        continue;
      }
      const parts: Buffer[] = [];
      for await (const part of body) parts.push(part);
      const write = writeSmall(join(dir, path), parts);
      const settled = write.finally(() => writes.delete(settled));
      writes.add(settled);
      settled.catch(() => {}); // handled below
      if (writes.size >= WRITES_MAX) await Promise.race(writes);
    }
    await Promise.all(writes);
    await chmod(dir, 0o700); // independent of the umask
  } catch (error) {
    await Promise.allSettled(writes);
    await removeTree(dir);
    throw error;
  }
}

/** The callback API takes a third of the time of the promise API. */
function writeSmall(path: string, parts: readonly Buffer[]): Promise<void> {
  const [only] = parts;
  const bytes = parts.length === 1 && only ? only : Buffer.concat(parts);
  return new Promise((resolve, reject) => {
    writeFile(path, bytes, { flag: 'wx', mode: 0o600 }, (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}

async function writeLarge(path: string, body: AsyncIterable<Buffer>): Promise<void> {
  await using file = await open(path, 'wx', 0o600); // closing it waits for pending writes
  let writing = Promise.resolve();
  for await (const part of body) {
    await writing;
    writing = file.writeFile(part); // while the next part is decrypted
    writing.catch(() => {}); // handled at the next part, or below
  }
  await writing;
}

/** Whether any component of the path is excluded. */
function isLeftOut(path: string): boolean {
  return path
    .split('/')
    .some((name) => LEFT_OUT.has(name) || LEFT_OUT_LIKE.some((like) => like.test(name)));
}
