/**
 * The programs that install: npm, which the machine has, and pnpm, which comes with the service. No
 * code of a project or a package runs in either: no scripts, no hooks of a .pnpmfile.cjs, no other
 * version of pnpm that package.json names.
 */
import { access } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import type { Env } from '../../../proto/common/env.ts';
import { BuildFailure } from '../build-failure.ts';
import type { Installer } from './jail.ts';

/** Always: no code of a package, no report to a registry, no advertising. */
const NPM_FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund'];
/** The same; pnpm-workspace.yaml of the archive, which may name hooks and registries, is unread. */
const PNPM_FLAGS = ['--ignore-scripts', '--ignore-pnpmfile', '--ignore-workspace'];
const PNPM_WORDS = ['--reporter=append-only'];

/** The lock file's packages; or, for `lock`, a lock file alone, made from package.json's ranges. */
export async function npm(env: Env, act: 'ci' | 'lock'): Promise<Installer> {
  const path = env['npm_execpath'];
  // npm's own path, when npm started the service; another package manager sets the same variable.
  const isNpm = path !== undefined && basename(path) === 'npm-cli.js';
  const file = isNpm ? path : await inPath(env, 'npm');
  const words = act === 'ci' ? ['ci'] : ['install', '--package-lock-only'];
  if (file) return { file, args: [...words, ...NPM_FLAGS] };
  throw new BuildFailure(
    'BUILD_ERROR',
    'the service has no npm to install dependencies with; ask its operator to install npm',
  );
}

/** `isFrozen` unless package.json has been changed since the lock file was made. */
export async function pnpm(env: Env, isFrozen: boolean): Promise<Installer> {
  const file = ownPnpm() ?? (await inPath(env, 'pnpm'));
  const lock = isFrozen ? '--frozen-lockfile' : '--no-frozen-lockfile';
  if (file) return { file, args: ['install', lock, ...PNPM_FLAGS, ...PNPM_WORDS] };
  throw new BuildFailure(
    'BUILD_ERROR',
    'the service has no pnpm; publish with a package-lock.json, which npm install makes',
  );
}

/** The one that this program depends on; a copy of the program without packages has none. */
function ownPnpm(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve('pnpm');
    return join(dirname(manifest), 'bin', 'pnpm.cjs');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

async function inPath(env: Env, name: string): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const file = join(folder, name);
    if (isAbsolute(folder) && (await isThere(file))) return file;
  }
  return undefined;
}

export async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
