/**
 * npm's lock files before an install: read, relieved of our own SDK, and checked, in the forms of
 * versions 1, 2 and 3. Used in the build's jail.
 */
import { posix } from 'node:path';
import { LOCK_MAX_BYTES, objectOf, readText } from '../read-file.ts';
import { checkPath, checkSpec } from './package-source.ts';
import {
  dropFrom,
  entriesOf,
  isObject,
  type Json,
  KINDS,
  SDK,
  stringsOf,
  writeJson,
} from './project-json.ts';

export const LOCK_FILES = ['package-lock.json', 'npm-shrinkwrap.json'] as const;

/** Whether it is there. What it says of the SDK goes when package.json has lost that. */
export async function checkNpmLock(
  root: string,
  file: string,
  isDropped: boolean,
): Promise<boolean> {
  const text = await readText(root, file, LOCK_MAX_BYTES);
  if (text === undefined) return false;
  const lock = objectOf(text, file);
  if (isDropped) {
    dropFromLock(lock);
    await writeJson(root, file, lock);
  }
  for (const [path, entry] of entriesOf(lock['packages'])) checkEntry(path, entry);
  checkFirstVersion(lock);
  return true;
}

function dropFromLock(lock: Json): void {
  // Of the first two lock file versions: npm reads `packages` where both are there.
  if (isObject(lock['dependencies'])) delete lock['dependencies'][SDK];
  const packages = lock['packages'];
  if (!isObject(packages)) return;
  const own = packages[''];
  if (isObject(own)) dropFrom(own);
  const key = `node_modules/${SDK}`;
  const entry = packages[key];
  const target = isObject(entry) && entry['link'] === true ? entry['resolved'] : undefined;
  for (const path of Object.keys(packages)) {
    const isTarget = typeof target === 'string' && isAt(path, target);
    if (isAt(path, key) || isTarget) delete packages[path];
  }
}

function isAt(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/**
 * A lock names files by its keys, by `resolved`, by the folders that its links lead to, and by what
 * a package depends on: npm resolves that anew where the lock does not serve it.
 */
function checkEntry(path: string, entry: unknown): void {
  checkPath(path, path);
  if (!isObject(entry)) return;
  const { resolved, link, version } = entry;
  // a link's is a folder: `packages/one` is no repository
  if (link === true && typeof resolved === 'string') checkPath(path, resolved);
  else checkSpec(path, resolved);
  checkSpec(path, version);
  const base = posix.normalize(path);
  for (const [name, spec] of KINDS.flatMap((kind) => stringsOf(entry[kind]))) {
    checkSpec(name, spec, base);
  }
}

/** `dependencies` in `dependencies`; objectOf bounds how deep. */
function checkFirstVersion(parent: Json): void {
  for (const [name, entry] of entriesOf(parent['dependencies'])) {
    if (!isObject(entry)) continue;
    checkSpec(name, entry['version']);
    checkSpec(name, entry['resolved']);
    checkFirstVersion(entry);
  }
}
