/**
 * Installs what a project depends on, into the project's directory: from its lock file, else from
 * package.json's ranges. Nothing of a package runs (scripts are off), and it is jailed all the
 * same: a package's metadata may name files of this machine. The registry is the operator's,
 * whatever the archive says. All of it ends with the signal, or with the runner.
 */
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Env } from '../proto/env.ts';
import type { BuildLog } from './build-log.ts';
import { BuildFailure } from './failure.ts';
import { type Installer, installSpec, withoutPaths } from './install-spec.ts';
import type { Jail } from './jail/ladder.ts';
import { dropSdk, readProject } from './package-json.ts';

/** Always: no code of a package, no report to a registry, no advertising. */
const FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund'];

export type Install = {
  /** The build's directory: the project is in project/, home/ is the installer's. */
  directory: string;
  jail: Jail;
  /** The operator's environment. */
  env: Env;
  log: BuildLog;
  signal: AbortSignal;
};

/** Throws a BuildFailure that says what the author, or the operator, has to do. */
export async function install(options: Install): Promise<void> {
  const { directory, log, env } = options;
  const root = join(directory, 'project');
  const project = await readProject(root);
  if (project === undefined) return log.line('info', 'no package.json: nothing to install');
  const locks = await lockFiles(root);
  if (await dropSdk(root, project, locks.npm)) {
    log.line('info', '"tabern" is supplied by the service: it is not installed');
  }
  if (project.dependencies.length === 0) return log.line('info', 'no dependencies to install');
  const command = locks.pnpm && !locks.npm ? await pnpm(env) : await npm(env, locks.npm);
  if (!locks.npm && !locks.pnpm) {
    log.line('warn', 'no package-lock.json or pnpm-lock.yaml: newest versions in range are used');
  }
  log.line('info', `installing dependencies: ${basename(command.file)} ${command.args.join(' ')}`);
  const started = performance.now();
  const code = await run(command, options);
  if (code !== 0) {
    throw new BuildFailure(
      'BUILD_ERROR',
      'the dependencies cannot be installed; mend what the build log says and publish again',
    );
  }
  log.line('info', `installed in ${((performance.now() - started) / 1_000).toFixed(1)} s`);
}

async function lockFiles(root: string): Promise<{ npm: boolean; pnpm: boolean }> {
  const exists = (name: string) => isThere(join(root, name));
  const [lock, shrinkwrap, pnpm] = await Promise.all(
    ['package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml'].map(exists),
  );
  return { npm: lock === true || shrinkwrap === true, pnpm: pnpm === true };
}

async function npm(env: Env, isLocked: boolean): Promise<Installer> {
  const act = isLocked ? 'ci' : 'install';
  const path = env['npm_execpath'];
  // npm's own path, when npm started the service; another package manager sets the same variable.
  const isNpm = path !== undefined && basename(path) === 'npm-cli.js';
  const file = isNpm ? path : await inPath(env, 'npm');
  if (file) return { file, args: [act, ...FLAGS] };
  throw new BuildFailure(
    'BUILD_ERROR',
    'the service has no npm to install dependencies with; ask its operator to install npm',
  );
}

async function pnpm(env: Env): Promise<Installer> {
  const found = await inPath(env, 'pnpm');
  // Not frozen: an entry for our SDK may have been taken out of package.json.
  const flags = ['--no-frozen-lockfile', '--ignore-scripts'];
  if (found) return { file: found, args: ['install', ...flags] };
  throw new BuildFailure(
    'BUILD_ERROR',
    'the service has no pnpm; publish with a package-lock.json, which npm install makes',
  );
}

async function inPath(env: Env, name: string): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const file = join(folder, name);
    if (isAbsolute(folder) && (await isThere(file))) return file;
  }
  return undefined;
}

/** The exit code; what it prints goes to the build's log as it comes. */
async function run(installer: Installer, options: Install): Promise<number | null> {
  const { directory, jail, env, signal, log } = options;
  const spec = await installSpec(installer, { build: directory, env });
  signal.throwIfAborted();
  const { child, exited, kill } = jail.launch(spec);
  signal.addEventListener('abort', kill, { once: true });
  const read = (stream: NodeJS.ReadableStream | null, level: 'log' | 'warn') =>
    stream &&
    createInterface({ input: stream }).on('line', (line) => {
      const text = withoutPaths(line, directory);
      if (text.trim() !== '' && !isNoise(text)) log.line(level, text);
    });
  read(child.stdout, 'log');
  read(child.stderr, 'warn');
  const closed = once(child, 'close').catch(() => undefined); // it could not be started: exit 127
  const { code } = await exited;
  await closed;
  signal.removeEventListener('abort', kill);
  signal.throwIfAborted();
  return code;
}

/** What npm says about the operator's own settings, and of log files that are gone by then. */
function isNoise(line: string): boolean {
  return /^npm (?:warn|WARN) (?:Unknown |config )|A complete log of this run/.test(line);
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
