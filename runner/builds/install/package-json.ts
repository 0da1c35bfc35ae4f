/**
 * A project's package.json and lock files before an install: read, relieved of our own SDK, and
 * checked. The service supplies "tabern" itself, in whatever way the author depends on it: a
 * registry has no such package, a path to it means nothing here. Dependencies by path must stay
 * inside the project, and none may come out of git. Used in the build's jail.
 */

import { objectOf, readText, SETTINGS_MAX_BYTES } from '../read-file.ts';
import { checkNpmLock, LOCK_FILES } from './npm-lock.ts';
import { checkPath, checkSpec } from './package-source.ts';
import { checkPnpmLock } from './pnpm-lock.ts';
import {
  dropFrom,
  entriesOf,
  isObject,
  type Json,
  KINDS,
  stringsOf,
  writeJson,
} from './project-json.ts';

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
  checkReplaced(json);
  const locked = await Promise.all(LOCK_FILES.map((file) => checkNpmLock(root, file, isDropped)));
  const locks = { npm: locked.includes(true), pnpm: await checkPnpmLock(root, isDropped) };
  const names = new Set(all.map(([name]) => name));
  if (entriesOf(json['workspaces']).length > 0) names.add('workspaces');
  return { dependencies: [...names], locks, isDropped };
}

/** What replaces a dependency of a package, or adds one, and where workspaces are. */
function checkReplaced(json: Json): void {
  const pnpm = isObject(json['pnpm']) ? json['pnpm'] : {};
  const { overrides, packageExtensions, configDependencies, patchedDependencies } = pnpm;
  const replaced = [json['overrides'], json['resolutions'], overrides, packageExtensions];
  for (const [name, spec] of stringsOf([replaced, configDependencies])) checkSpec(name, spec);
  for (const [name, patch] of stringsOf(patchedDependencies)) checkPath(name, patch);
  for (const [, pattern] of stringsOf(json['workspaces'])) {
    checkPath('workspaces', pattern.replace(/^!/, ''));
  }
}
