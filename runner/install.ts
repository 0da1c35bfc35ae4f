/**
 * Installs what a project depends on, into the project's directory: from its lock file, else from
 * package.json's ranges. Nothing of a package runs (scripts are off), and it is jailed all the
 * same: a package's metadata may name files of this machine. The registry is the operator's,
 * whatever the archive says. All of it ends with the signal, or with the runner.
 */
import { once } from 'node:events';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Env } from '../proto/env.ts';
import type { BuildLog } from './build-log.ts';
import { fromDeno, jsrAdvice } from './deno-project.ts';
import { BuildFailure } from './failure.ts';
import { type Installer, installSpec, withoutPaths } from './install-spec.ts';
import type { Installed } from './installed.ts';
import { isThere, npm, pnpm } from './installers.ts';
import type { Jail } from './jail/ladder.ts';
import { dropSdk, readProject } from './package-json.ts';

export type Install = {
  /** The build's directory: the project is in project/, home/ is the installer's. */
  directory: string;
  projectId: string;
  jail: Jail;
  /** The operator's environment. */
  env: Env;
  installed: Installed;
  log: BuildLog;
  signal: AbortSignal;
};

/** `ofJsr`: names of packages of jsr among the dependencies. */
type Asked = Install & { ofJsr: readonly string[] };

/** Throws a BuildFailure that says what the author, or the operator, has to do. */
export async function install(options: Install): Promise<void> {
  const { directory, log, env } = options;
  const root = join(directory, 'project');
  const ofJsr = await fromDeno(root, options);
  const project = await readProject(root);
  if (project === undefined) return log.line('info', 'no package.json: nothing to install');
  const locks = await lockFiles(root);
  const isDropped = await dropSdk(root, project, locks.npm);
  if (isDropped) log.line('info', '"tabern" is supplied by the service: it is not installed');
  if (project.dependencies.length === 0) return log.line('info', 'no dependencies to install');
  if (!locks.npm && !locks.pnpm) {
    log.line('warn', 'no package-lock.json or pnpm-lock.yaml: newest versions in range are used');
    await done(await npm(env, 'lock'), { ...options, ofJsr });
  }
  const isPnpm = locks.pnpm && !locks.npm;
  const command = isPnpm ? await pnpm(env, !isDropped) : await npm(env, 'ci');
  await again(command, { ...options, ofJsr });
}

/** What the lock file says, from an earlier build of the project or by the installer. */
async function again(command: Installer, options: Asked): Promise<void> {
  const { directory, projectId, installed, log } = options;
  const root = join(directory, 'project');
  const key = await installed.keyOf(root, [command.file, ...command.args]);
  if (key !== undefined && (await installed.use(projectId, key, root))) {
    return log.line('info', 'the lock file is as before: dependencies are of an earlier build');
  }
  await done(command, options);
  if (key !== undefined) await installed.keep(projectId, key, root);
}

async function done(command: Installer, options: Asked): Promise<void> {
  const { log, ofJsr } = options;
  const words = `${basename(command.file)} ${command.args.join(' ')}`;
  log.line('info', `installing dependencies: ${words}`);
  const started = performance.now();
  const code = await run(command, options);
  if (code !== 0) {
    const advice =
      ofJsr.length > 0 ? jsrAdvice(ofJsr) : 'mend what the build log says and publish again';
    throw new BuildFailure('BUILD_ERROR', `the dependencies cannot be installed; ${advice}`);
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
