/**
 * Allowed sources of a dependency: a registry, an address, or a path inside the project. Git
 * repositories and paths of the machine are refused by name. Pure; used in the build's jail.
 */
import { posix } from 'node:path';
import { type BuildFailure, buildError } from '../build-failure.ts';

/** The forms of npm-package-arg: git's own addresses, hosts by name, `user/repository`. */
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
const PATH = /^(?:file:|link:|portal:|workspace:|\.{0,2}\/|\.{1,2}$|~\/)/i;
const URL_LIKE = /^[a-z][a-z0-9+.-]*:/i;
const BLANKS = /[\0-\x20\x7f]/g;

/** Removes control characters, as URL parsers do: `fi\tle:` is `file:`. */
export function compact(text: string): string {
  return text.replace(BLANKS, '');
}

/** Paths are relative to `base`, a folder inside the project. */
export function checkSpec(name: string, spec: unknown, base = ''): void {
  if (typeof spec !== 'string') return;
  const value = compact(spec);
  if (/^git\+file:/i.test(value)) throw outside(name, value);
  if (PATH.test(value)) {
    if (/^workspace:[*^~\d]/i.test(value)) return;
    checkPath(name, value.replace(/^[a-z]+:/i, ''), base);
    return;
  }
  if (GIT.some((form) => form.test(value))) throw outOfGit(name, value);
  // npm reads any other text with a slash as a path
  if (!URL_LIKE.test(value) && value.includes('/')) checkPath(name, value, base);
}

/** Refuses a path that leads out of the project. */
export function checkPath(name: string, path: string, base = ''): void {
  const plain = decoded(compact(path));
  const isAbsolute = plain.startsWith('/') || plain.startsWith('~');
  const normal = posix.normalize(posix.join(base, plain));
  if (isAbsolute || normal === '..' || normal.startsWith('../')) throw outside(name, path);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // a name with a percent sign
  }
}

export function outside(name: string, spec: string): BuildFailure {
  return refused(name, `is outside the project (${spec}); copy it into it`);
}

export function outOfGit(name: string, spec: string): BuildFailure {
  const instead = 'use a release of a registry, or the address of a tarball';
  return refused(name, `is a git repository (${spec}), which a build does not clone; ${instead}`);
}

function refused(name: string, problem: string): BuildFailure {
  return buildError(`the dependency ${JSON.stringify(name)} ${problem}`);
}
