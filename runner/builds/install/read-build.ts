/**
 * Reads from a project's files which dependencies its build must install, and prepares these files
 * (package.json, lock files) for the installer. Runs in the build's jail.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildFailure } from '../build-failure.ts';
import type { Level } from '../log.ts';
import { fromDeno } from './deno-project.ts';
import { installKey } from './key.ts';
import { readProject } from './package-json.ts';

export type Line = { level: Level; message: string };
export type Reading = {
  /** Absent: nothing has to be installed. */
  install?: {
    /** Which lock files there are. */
    npm: boolean;
    pnpm: boolean;
    /** Our SDK was taken out of package.json. */
    isDropped: boolean;
    /** Names of packages of jsr among the dependencies. */
    ofJsr: string[];
    /** Of the files that decide what is installed; absent when they do not. */
    key?: string;
  };
};

/** Ours: they are told to the author when they cannot be had. */
const OF_JSR_MAX = 100;

/** Throws a BuildFailure that says what the author has to do. */
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
  const key = await installKey(root);
  return { install: { ...locks, isDropped, ofJsr, ...(key === undefined ? {} : { key }) } };
}

async function checkEntrypoint(root: string, entrypoint: string): Promise<void> {
  const found = await stat(join(root, entrypoint)).catch(() => undefined);
  if (found?.isFile()) return;
  throw new BuildFailure(
    'BUILD_ERROR',
    `the archive has no file ${JSON.stringify(entrypoint)}; publish from the project's folder`,
  );
}
