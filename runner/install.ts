/**
 * Installs what a project depends on, into the project's directory: from its lock file, else from
 * package.json's ranges. Nothing of a package runs (scripts are off), and it is jailed all the
 * same: a package's metadata may name files of this machine, or addresses of its network. The
 * registry is the operator's, whatever the archive says. All of it ends with the signal, or with
 * the runner.
 */
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Env } from '../proto/env.ts';
import type { Log } from '../proto/log.ts';
import type { BuildLog } from './build-log.ts';
import { fromDeno, jsrAdvice } from './deno-project.ts';
import { BuildFailure } from './failure.ts';
import { type Installer, installSpec, withoutPaths } from './install-spec.ts';
import { openInstallWay } from './install-way.ts';
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
  /** The runner's own. */
  ownLog: Log;
  signal: AbortSignal;
};

/** `ofJsr`: names of packages of jsr among the dependencies. */
type Asked = Install & { ofJsr: readonly string[] };

const MEND = 'mend what the build log says and publish again';
const CLOSED =
  'an address that the build log names is closed to builds: take the package from a registry, ' +
  'or put its tarball into the project';

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
  const { code, isRefused } = await run(command, options);
  if (code !== 0) {
    const otherwise = ofJsr.length > 0 ? jsrAdvice(ofJsr) : MEND;
    const advice = isRefused ? CLOSED : otherwise;
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

type Ran = { code: number | null; isRefused: boolean };

/** How it ended; what it prints goes to the build's log as it comes. */
async function run(installer: Installer, options: Install): Promise<Ran> {
  const { directory, jail, env, signal, log, ownLog } = options;
  await using way = await openInstallWay({ jail, env, lines: log, log: ownLog });
  const { localPort } = way;
  const spec = await installSpec(installer, { build: directory, env, localPort });
  signal.throwIfAborted();
  const { child, exited, kill } = jail.launch(spec);
  signal.addEventListener('abort', kill, { once: true });
  const taken = way.take(child).catch((error: Error) => {
    kill();
    return error;
  });
  const read = async (stream: NodeJS.ReadableStream | null, level: 'log' | 'warn') => {
    if (stream === null) return;
    for await (const line of createInterface({ input: stream })) {
      const text = withoutPaths(line, directory);
      if (text.trim() !== '' && !isNoise(text)) log.line(level, text);
    }
  };
  // not the child's close: it does not come when its channel was closed from here
  const said = [read(child.stdout, 'log'), read(child.stderr, 'warn')];
  const { code } = await exited;
  await Promise.all(said);
  const problem = await taken;
  signal.removeEventListener('abort', kill);
  signal.throwIfAborted();
  if (problem) throw problem;
  return { code, isRefused: way.isRefused };
}

/** What npm says about the operator's own settings, and of log files that are gone by then. */
function isNoise(line: string): boolean {
  return /^npm (?:warn|WARN) (?:Unknown |config )|A complete log of this run/.test(line);
}
