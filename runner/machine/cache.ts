/**
 * The directory of reproducible files: bundles, installs, extensions, the Chrome of the npm
 * package. The files are not synced, so a power loss may leave files of 0 bytes. The directory is
 * therefore emptied after a boot of the machine.
 */
import { readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { orMissing } from '../common/errno.ts';
import { removeTree } from '../common/remove.ts';

const MARK = 'boot';
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** The kernel's boot id; undefined where it has none. */
export function bootId(): string | undefined {
  try {
    return readFileSync(BOOT_ID, 'utf8').trim() || undefined;
  } catch {
    return undefined; // not Linux: the cache is emptied at every start
  }
}

/** Creates the directory; empties one of an earlier boot. */
export async function openCacheDir(
  dir: string,
  { log, boot }: { log: Log; boot: string | undefined },
): Promise<void> {
  const mark = join(dir, MARK);
  const written = await readFile(mark, 'utf8').catch(orMissing);
  if (boot !== undefined && written?.trim() === boot) return;
  await mkdir(dir, { recursive: true });
  const names = (await readdir(dir)).filter((name) => name !== MARK);
  for (const name of names) await removeTree(join(dir, name));
  if (names.length > 0) log.info({ names }, 'emptied the cache of an earlier boot');
  if (boot === undefined) await rm(mark, { force: true });
  else await writeFile(mark, `${boot}\n`); // last: a crash before this empties the cache once more
}
