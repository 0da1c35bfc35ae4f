/**
 * Determines which dependencies a build must install, and prepares package.json and lock files for
 * the installer. Used in the build's jail.
 */
import { hash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buildError } from '../build-failure.ts';
import type { Level } from '../log.ts';
import { LOCK_MAX_BYTES, readText, SETTINGS_MAX_BYTES } from '../read-file.ts';
import { fromDeno } from './deno-project.ts';
import { LOCK_FILES } from './npm-lock.ts';
import { readProject } from './package-json.ts';
import { PNPM_LOCK } from './pnpm-lock.ts';

export type Line = { level: Level; message: string };
export type Reading = {
  /** Absent when nothing must be installed. */
  install?: {
    /** Existing lock files. */
    npm: boolean;
    pnpm: boolean;
    /** The SDK was removed from package.json. */
    isDropped: boolean;
    /** Names of packages of jsr among the dependencies. */
    ofJsr: string[];
    /** The key of the install cache; undefined when the install must not be cached. */
    key?: string | undefined;
  };
};

/** Ours: an error message lists them. */
const OF_JSR_MAX = 100;
/** Of a cache key: changes with the meaning of an entry. */
const FORMAT = 2;
/** In package.json or a lock file: a package from the project's files, which no key covers. */
const OWN_FILES = /\b(?:file|link|portal|workspace):|"link":\s*true|"workspaces":/;

/** Throws a BuildFailure with the author's fix. */
export async function readBuild(
  root: string,
  { entrypoint, namesJsr }: { entrypoint: string; namesJsr: boolean },
  lines: Line[],
): Promise<Reading> {
  await checkEntrypoint(root, entrypoint);
  const line = (level: Level, message: string) => void lines.push({ level, message });
  const ofJsr = (await fromDeno(root, { namesJsr, line })).slice(0, OF_JSR_MAX);
  const project = await readProject(root);
  if (project === undefined) {
    line('info', 'no package.json: nothing to install');
    return {};
  }
  const { isDropped, locks } = project;
  if (isDropped) line('info', '"tabern" is supplied by the service: it is not installed');
  if (project.dependencies.length === 0) {
    line('info', 'no dependencies to install');
    return {};
  }
  return { install: { ...locks, isDropped, ofJsr, key: await installKey(root) } };
}

async function checkEntrypoint(root: string, entrypoint: string): Promise<void> {
  const found = await stat(join(root, entrypoint)).catch(() => undefined);
  if (found?.isFile()) return;
  throw buildError(
    `the archive has no file ${JSON.stringify(entrypoint)}; publish from the project's folder`,
  );
}

/**
 * The cache key: a hash of package.json, the lock files and the platform. Undefined when other
 * files also decide what is installed.
 */
export async function installKey(root: string): Promise<string | undefined> {
  const project = await readText(root, 'package.json', SETTINGS_MAX_BYTES);
  const names = [...LOCK_FILES, PNPM_LOCK];
  const locks = await Promise.all(names.map((name) => readText(root, name, LOCK_MAX_BYTES)));
  const texts = [project, ...locks];
  if (project === undefined || locks.every((lock) => lock === undefined)) return undefined;
  if (texts.some((text) => text !== undefined && OWN_FILES.test(text))) return undefined;
  const place = [process.platform, process.arch, process.version];
  return hash('sha256', JSON.stringify([FORMAT, place, texts.map((text) => text ?? null)]));
}
