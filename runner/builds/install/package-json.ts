/**
 * Prepares a project's package.json and lock files for an install: removes the SDK's packages,
 * which the service supplies, and checks the dependencies. Paths must stay inside the project, and
 * git is refused. Used in the build's jail.
 */
import { isObject, type Json, objectOf, readText, SETTINGS_MAX_BYTES } from '../read-file.ts';
import { checkNpmLock, LOCK_FILES } from './npm-lock.ts';
import { checkPath, checkSpec } from './package-source.ts';
import { checkPnpmLock } from './pnpm-lock.ts';
import { dropFrom, entriesOf, KINDS, stringsOf, writeJson } from './project-json.ts';

export type Project = {
  /** Names of all direct dependencies except the SDK. */
  dependencies: string[];
  /** Existing lock files. */
  locks: { npm: boolean; pnpm: boolean };
  /** The SDK was a dependency and was removed. */
  isDropped: boolean;
};

/** Undefined without a package.json. Throws a BuildFailure for an invalid or forbidden one. */
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

/** Checks replaced and added dependencies, patches, and the paths of workspaces. */
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
