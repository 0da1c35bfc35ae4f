/**
 * Installs what a project depends on, into the project's directory: from its lock file, else from
 * package.json's ranges. Nothing of a package runs (scripts are off); the environment is clean; the
 * registry is the operator's, whatever the archive says. The whole process group ends with the
 * signal.
 */
import { spawn } from 'node:child_process';
import { access } from 'node:fs/promises';
import { basename, delimiter, isAbsolute, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Env } from '../proto/env.ts';
import { type BuildLog, within } from './build-log.ts';
import { BuildFailure } from './failure.ts';
import { dropSdk, readProject } from './package-json.ts';

/**
 * Of the operator's environment, what an installer may see: where packages come from and how to get
 * there.
 */
const ENV_PASSED = [
  'PATH',
  'npm_config_registry',
  'npm_config_userconfig',
  'npm_config_globalconfig',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
];
/** Always: no code of a package, no report to a registry, no advertising. */
const FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];

export type Install = {
  /** The project's directory. */
  root: string;
  /** Of the installer: empty, and gone after the build. */
  home: string;
  /** Kept over builds. */
  cacheDirectory: string;
  /** The operator's environment. */
  env: Env;
  log: BuildLog;
  signal: AbortSignal;
};

type Command = { file: string; args: string[] };

/** Throws a BuildFailure that says what the author, or the operator, has to do. */
export async function install(options: Install): Promise<void> {
  const { root, log, env } = options;
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

async function npm(env: Env, isLocked: boolean): Promise<Command> {
  const act = isLocked ? 'ci' : 'install';
  const path = env['npm_execpath'];
  // npm's own path, when npm started the service; another package manager sets the same variable.
  if (path && basename(path) === 'npm-cli.js') {
    return { file: process.execPath, args: [path, act, ...FLAGS] };
  }
  const found = await inPath(env, 'npm');
  if (found) return { file: found, args: [act, ...FLAGS] };
  throw new BuildFailure(
    'BUILD_ERROR',
    'the service has no npm to install dependencies with; ask its operator to install npm',
  );
}

async function pnpm(env: Env): Promise<Command> {
  const found = await inPath(env, 'pnpm');
  // Not frozen: an entry for our SDK may have been taken out of package.json.
  const flags = ['--no-frozen-lockfile', '--ignore-scripts', '--prefer-offline'];
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
async function run(command: Command, options: Install): Promise<number | null> {
  const { root, home, signal, log } = options;
  signal.throwIfAborted();
  // A group of its own: installers start others, such as git.
  const child = spawn(command.file, command.args, {
    cwd: root,
    env: environment(options),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const kill = () => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  signal.addEventListener('abort', kill, { once: true });
  try {
    const read = (stream: NodeJS.ReadableStream, level: 'log' | 'warn') =>
      createInterface({ input: stream }).on('line', (line) => {
        const text = within(within(line, root), home);
        if (text.trim() !== '' && !isNoise(text)) log.line(level, text);
      });
    read(child.stdout, 'log');
    read(child.stderr, 'warn');
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    signal.throwIfAborted();
    return code;
  } finally {
    signal.removeEventListener('abort', kill);
    kill();
  }
}

function environment({ env, home, cacheDirectory }: Install): Record<string, string> {
  const passed = ENV_PASSED.flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const config = env['HOME'] ? { npm_config_userconfig: join(env['HOME'], '.npmrc') } : {};
  return {
    ...config,
    ...Object.fromEntries(passed),
    HOME: home,
    TMPDIR: home,
    CI: 'true',
    npm_config_cache: join(cacheDirectory, 'npm'),
    npm_config_store_dir: join(cacheDirectory, 'pnpm'),
    npm_config_logs_max: '0',
    npm_config_update_notifier: 'false',
  };
}

/** What npm says about the operator's own settings, and of log files that are gone by then. */
function isNoise(line: string): boolean {
  return /^npm (?:warn|WARN) (?:Unknown |config )|A complete log of this run/.test(line);
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // ESRCH: all of it has ended already.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
