/**
 * The installers: npm from the machine, and pnpm from the service's dependencies. Neither runs code
 * of a project or a package: no scripts, no hooks of a .pnpmfile.cjs, no other version of pnpm.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import type { Env } from '../../../proto/common/env.ts';
import { buildError } from '../build-failure.ts';
import type { Installer } from './jail.ts';

/** No code of a package, no report to a registry, no advertising. */
const NPM_FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund'];
/** Also without pnpm-workspace.yaml, which may name hooks and registries. */
const PNPM_FLAGS = ['--ignore-scripts', '--ignore-pnpmfile', '--ignore-workspace'];
const PNPM_REPORTER = '--reporter=append-only';

/** `ci` installs the lock file's packages; `lock` only generates a lock file. */
export function npm(env: Env, act: 'ci' | 'lock'): Installer {
  const path = env['npm_execpath'];
  // npm's path when npm started the service; other package managers also set this variable
  const isNpm = path !== undefined && basename(path) === 'npm-cli.js';
  const file = isNpm ? path : inPath(env, 'npm');
  const words = act === 'ci' ? ['ci'] : ['install', '--package-lock-only'];
  if (file) return { file, args: [...words, ...NPM_FLAGS] };
  throw buildError(
    'the service has no npm to install dependencies with; ask its operator to install npm',
  );
}

/** `isFrozen` unless package.json has changed since the lock file was generated. */
export function pnpm(env: Env, isFrozen: boolean): Installer {
  const file = ownPnpm() ?? inPath(env, 'pnpm');
  const lock = isFrozen ? '--frozen-lockfile' : '--no-frozen-lockfile';
  if (file) return { file, args: ['install', lock, ...PNPM_FLAGS, PNPM_REPORTER] };
  throw buildError(
    'the service has no pnpm; publish with a package-lock.json, which npm install makes',
  );
}

/** The service's own pnpm; a copy of the service without packages has none. */
function ownPnpm(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve('pnpm');
    return join(dirname(manifest), 'bin', 'pnpm.cjs');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

function inPath(env: Env, name: string): string | undefined {
  const folders = (env['PATH'] ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}
