/** The name of what an install of a project gives. Used in the build's jail. */
import { createHash } from 'node:crypto';
import { LOCK_MAX_BYTES, readText, SETTINGS_MAX_BYTES } from '../read-file.ts';
import { LOCK_FILES } from './npm-lock.ts';
import { PNPM_LOCK } from './pnpm-lock.ts';

/** Changes when what an entry means does. */
const FORMAT = 2;
/** In package.json or a lock file: a package out of the project's files, which no key covers. */
const OWN_FILES = /\b(?:file|link|portal|workspace):|"link":\s*true|"workspaces":/;

/** Of package.json, the lock, and where it is installed; undefined when these do not decide it. */
export async function installKey(root: string): Promise<string | undefined> {
  const project = await readText(root, 'package.json', SETTINGS_MAX_BYTES);
  const names = [...LOCK_FILES, PNPM_LOCK];
  const locks = await Promise.all(names.map((name) => readText(root, name, LOCK_MAX_BYTES)));
  const texts = [project, ...locks];
  if (project === undefined || locks.every((lock) => lock === undefined)) return undefined;
  if (texts.some((text) => text !== undefined && OWN_FILES.test(text))) return undefined;
  const place = [process.platform, process.arch, process.version];
  const what = JSON.stringify([FORMAT, place, texts.map((text) => text ?? null)]);
  return createHash('sha256').update(what).digest('hex');
}
