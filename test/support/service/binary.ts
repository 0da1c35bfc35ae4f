/** The single executable, made from the sources as they are now. */
import { execFile } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TempDirectory, tempDirectory } from '../temp.ts';

const BUILD = join(import.meta.dirname, '../../../gateway/packaging/build.ts');
/** It takes 4 s on a quiet machine. */
const BUILD_LIMIT_MS = 240_000;

/**
 * A directory that holds `tabern`, and nothing else. `flags` are those of `npm run binary`; `build`
 * is the one of another copy of the sources.
 */
export async function builtBinary(
  flags: readonly string[] = [],
  build = BUILD,
): Promise<TempDirectory> {
  await using work = tempDirectory();
  const made = join(work.path, 'made');
  const options = { timeout: BUILD_LIMIT_MS };
  await promisify(execFile)(process.execPath, [build, ...flags, '--out', made], options);
  const dir = tempDirectory();
  copyFileSync(made, join(dir.path, 'tabern'));
  return dir;
}
