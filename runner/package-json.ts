/**
 * A project's package.json and lock files before an install: read, relieved of our own SDK, and
 * checked. The service supplies "tabern" itself, in whatever way the author depends on it: a
 * registry has no such package, a path to it means nothing here. Dependencies by path must stay
 * inside the project, and none may come out of git. Used in the build's jail.
 */
import { writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { BuildFailure } from './failure.ts';
import { LOCK_MAX_BYTES, objectOf, readText, SETTINGS_MAX_BYTES } from './read-file.ts';

const SDK = 'tabern';
const KINDS = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'];
export const LOCK_FILES = ['package-lock.json', 'npm-shrinkwrap.json'] as const;
export const PNPM_LOCK = 'pnpm-lock.yaml';
/** As npm-package-arg takes them: git's own addresses, hosts by name, `user/repository`. */
const GIT = [
  /^git[+:@]/i,
  /^ssh:/i,
  /^(?:github|gitlab|bitbucket|gist|sourcehut):/i,
  /^[^@/\s:]+@[^/\s:]+:/,
  /^[\w.-]+\/[\w.-]+(?:#|$)/,
  /^https?:\/\/(?:[^@/]*@)?(?:www\.)?(?:github|gitlab)\.com\/[^/]+\/[^/]+\/?(?:#|$)/i,
  /^https?:\/\/(?:[^@/]*@)?(?:bitbucket\.org|git\.sr\.ht)\/[^/]+\/[^/]+\/?(?:#|$)/i,
  /^https?:\/\/[^#]*\.git(?:#|$)/i,
];
const PNPM_GIT = /\btype: git\b/;

type Json = Record<string, unknown>;
export type Project = {
  /** Names of all of its direct dependencies, our SDK excepted. */
  dependencies: string[];
  /** Which lock files there are. */
  locks: { npm: boolean; pnpm: boolean };
  /** Our SDK was a dependency, and is none now. */
  isDropped: boolean;
};

/**
 * Undefined when there is no package.json. Throws a BuildFailure for one that npm could not use, or
 * should not.
 */
export async function readProject(root: string): Promise<Project | undefined> {
  const text = await readText(root, 'package.json', SETTINGS_MAX_BYTES);
  if (text === undefined) return undefined;
  const json = objectOf(text, 'package.json');
  const isDropped = dropFrom(json);
  if (isDropped) await writeJson(root, 'package.json', json);
  const all = KINDS.flatMap((kind) => entriesOf(json[kind]));
  for (const [name, spec] of all) checkSpec(name, spec);
  const locked = await Promise.all(LOCK_FILES.map((file) => checkLock(root, file, isDropped)));
  const pnpm = await readText(root, PNPM_LOCK, LOCK_MAX_BYTES);
  if (pnpm !== undefined && PNPM_GIT.test(pnpm)) throw outOfGit(PNPM_LOCK, 'type: git');
  const names = new Set(all.map(([name]) => name));
  if (entriesOf(json['workspaces']).length > 0) names.add('workspaces');
  const locks = { npm: locked.includes(true), pnpm: pnpm !== undefined };
  return { dependencies: [...names], locks, isDropped };
}

function dropFrom(json: Json): boolean {
  const kinds = KINDS.filter((kind) => entriesOf(json[kind]).some(([name]) => name === SDK));
  for (const kind of kinds) delete (json[kind] as Json)[SDK];
  return kinds.length > 0;
}

/** Whether it is there. What it says of the SDK goes when package.json has lost that. */
async function checkLock(root: string, file: string, isDropped: boolean): Promise<boolean> {
  const text = await readText(root, file, LOCK_MAX_BYTES);
  if (text === undefined) return false;
  const lock = objectOf(text, file);
  if (isDropped && isObject(lock['packages'])) {
    dropFromLock(lock, lock['packages']);
    await writeJson(root, file, lock);
  }
  for (const [path, entry] of entriesOf(lock['packages'])) checkLocked(path, entry);
  return true;
}

function dropFromLock(lock: Json, packages: Json): void {
  const own = packages[''];
  if (isObject(own)) dropFrom(own);
  const key = `node_modules/${SDK}`;
  const entry = packages[key];
  const target = isObject(entry) && entry['link'] === true ? entry['resolved'] : undefined;
  for (const path of Object.keys(packages)) {
    const isTarget = typeof target === 'string' && isAt(path, target);
    if (isAt(path, key) || isTarget) delete packages[path];
  }
  // Of the first two lock file versions: npm reads `packages` where both are there.
  if (isObject(lock['dependencies'])) delete lock['dependencies'][SDK];
}

function isAt(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** A lock names files too: by `resolved`, and by the folders that its links lead to. */
function checkLocked(path: string, entry: unknown): void {
  if (!isObject(entry)) return;
  const { resolved, link } = entry;
  if (typeof resolved !== 'string') return;
  // a link's is a folder: `packages/one` is no repository
  checkSpec(path, link === true ? `file:${resolved}` : resolved);
}

/** Refuses a dependency that npm would read from the machine it runs on, or clone. */
function checkSpec(name: string, spec: unknown): void {
  if (typeof spec !== 'string') return;
  const value = spec.trim();
  if (/^git\+file:/i.test(value)) throw outside(name, value);
  const isPath = /^(?:file:|link:|portal:|workspace:|\.{0,2}\/|\.{1,2}$|~\/)/i.test(value);
  if (!isPath) {
    if (GIT.some((form) => form.test(value))) throw outOfGit(name, value);
    return;
  }
  if (/^workspace:[*^~\d]/i.test(value)) return;
  const normal = posix.normalize(decoded(value.replace(/^[a-z]+:/i, '')));
  const climbs = normal === '..' || normal.startsWith('../');
  if (normal.startsWith('/') || normal.startsWith('~') || climbs) throw outside(name, value);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // a name with a percent sign
  }
}

async function writeJson(root: string, file: string, json: Json): Promise<void> {
  await writeFile(join(root, file), `${JSON.stringify(json, null, 2)}\n`);
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function outside(name: string, spec: string): BuildFailure {
  return refused(name, `is outside the project (${spec}); copy it into it`);
}

function outOfGit(name: string, spec: string): BuildFailure {
  const instead = 'use a release of a registry, or the address of a tarball';
  return refused(name, `is a git repository (${spec}), which a build does not clone; ${instead}`);
}

function refused(name: string, problem: string): BuildFailure {
  return new BuildFailure('BUILD_ERROR', `the dependency ${JSON.stringify(name)} ${problem}`);
}
