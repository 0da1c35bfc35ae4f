/**
 * Prepares npm's lock files for an install: removes the SDK and checks the entries. Versions 1, 2
 * and 3. Used in the build's jail.
 */
import { posix } from 'node:path';
import { isObject, type Json, LOCK_MAX_BYTES, objectOf, readText } from '../read-file.ts';
import { checkPath, checkSpec } from './package-source.ts';
import {
  dropFrom,
  dropMembers,
  entriesOf,
  KINDS,
  SDKS,
  stringsOf,
  writeJson,
} from './project-json.ts';

export const LOCK_FILES = ['package-lock.json', 'npm-shrinkwrap.json'] as const;

/** Whether the file exists. `isDropped`: the SDK was removed from package.json. */
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
  // versions 1 and 2; npm reads `packages` when both exist
  dropMembers(lock['dependencies'], SDKS);
  const packages = lock['packages'];
  if (!isObject(packages)) return;
  const own = packages[''];
  if (isObject(own)) dropFrom(own);
  for (const name of SDKS) dropPackage(packages, `node_modules/${name}`);
}

/** Removes a package, and the folder to which it links. */
function dropPackage(packages: Json, key: string): void {
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
 * A lock names files by its keys, by `resolved`, by the targets of links, and by a package's
 * dependencies, which npm resolves again when the lock has no entry for them.
 */
function checkEntry(path: string, entry: unknown): void {
  checkPath(path, path);
  if (!isObject(entry)) return;
  const { resolved, link, version } = entry;
  // of a link: a folder, so `packages/one` is not a repository
  if (link === true && typeof resolved === 'string') checkPath(path, resolved);
  else checkSpec(path, resolved);
  checkSpec(path, version);
  const base = posix.normalize(path);
  for (const [name, spec] of KINDS.flatMap((kind) => stringsOf(entry[kind]))) {
    checkSpec(name, spec, base);
  }
}

/** Recursive `dependencies`; objectOf limits the depth. */
function checkFirstVersion(parent: Json): void {
  for (const [name, entry] of entriesOf(parent['dependencies'])) {
    if (!isObject(entry)) continue;
    checkSpec(name, entry['version']);
    checkSpec(name, entry['resolved']);
    checkFirstVersion(entry);
  }
}
