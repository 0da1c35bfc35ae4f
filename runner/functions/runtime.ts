/**
 * The runtime of function hosts: this Node, or Deno with the same host files and the same bundles.
 * Deno adds its own sandbox: it is permitted only the few paths and ports that a host uses.
 */
import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path';
import { promisify } from 'node:util';
import type { Env } from '../../proto/common/env.ts';
import { readSetting } from '../../proto/common/settings/read.ts';
import type { Jail } from '../jail/jail.ts';
import { isExecutable } from '../jail/prlimit.ts';

/** The permissions of a host. Paths are as the host sees them. */
export type Permissions = {
  /** Its code, its functions and its sockets. */
  read: readonly string[];
  sockets: readonly string[];
  tmp: string;
  cdpPort: number;
  /** The jail has a network namespace of its own, with internet access through the proxy. */
  hasEgress: boolean;
};

export type Runtime = {
  kind: 'node' | 'deno';
  /** Of the program, such as 24.21.0. */
  version: string;
  /** On this machine. */
  program: string;
  /** Arguments between the program and the host's main file. */
  flags(leave: Permissions): string[];
  /** In addition to the environment of every host. */
  env: Readonly<Record<string, string>>;
};

/** The configured engine is not installed. The message says what to do. */
export class RuntimeNotFound extends Error {
  override readonly name = 'RuntimeNotFound';
}

/** Ours: it answers in 20 ms. */
const VERSION_TIMEOUT_MS = 20_000;
const NODE_FLAGS = [
  ...['--no-addons', '--disable-sigusr1', '--enable-source-maps', '--disable-warning=*'],
  // of later versions
  ...['--no-experimental-ffi'].filter((flag) => process.allowedNodeEnvironmentFlags.has(flag)),
];
/** No prompts, no downloads, no settings files: only local code runs. */
const DENO_FLAGS = [
  ...['run', '--quiet', '--no-prompt', '--no-remote', '--no-lock', '--no-config'],
  ...['--cached-only', '--node-modules-dir=manual', '--allow-env', '--allow-sys=homedir,osRelease'],
  // playwright reads these to detect the system: it finds nothing instead of an error
  '--ignore-read=/proc,/run/WSL,/etc/os-release',
];
const DENO_ENV = { DENO_NO_UPDATE_CHECK: '1' };
/** The runtime of this process; the default for hosts. */
export const OWN_KIND: Runtime['kind'] = 'deno' in process.versions ? 'deno' : 'node';
/** Platform package of the npm package `deno`, whose own script only starts the program in it. */
const DENO_PACKAGE = `@deno/linux-${process.arch}-glibc`;

/** Searches the packages of `from`: ours. Throws RuntimeNotFound. */
export async function findRuntime(
  kind: Runtime['kind'],
  env: Env,
  from = import.meta.url,
): Promise<Runtime> {
  if (kind === 'deno') return deno(await findDeno(env, from));
  if (OWN_KIND === 'node') return node();
  throw new RuntimeNotFound('the runner itself runs under Deno: TABERN_ENGINE must be deno');
}

/** Deno opens a pair of unix sockets first of all, and dies where that is not allowed. */
export function canRun({ kind }: Runtime, jail: Pick<Jail, 'hasUnixSockets'>): boolean {
  return kind === 'node' || jail.hasUnixSockets;
}

export function node(): Runtime {
  return {
    kind: 'node',
    version: process.versions.node,
    program: process.execPath,
    flags: ({ hasEgress }) => [...NODE_FLAGS, ...(hasEgress ? ['--use-env-proxy'] : [])],
    env: {},
  };
}

async function deno(program: string): Promise<Runtime> {
  const version = await versionOf(program);
  return { kind: 'deno', version, program, flags: denoFlags, env: DENO_ENV };
}

/**
 * Only the two sockets of the host lead out of a network namespace. Deno checks the host name of a
 * fetch, which only the egress proxy can decide on: every name is allowed there.
 */
function denoFlags({ read, sockets, tmp, cdpPort, hasEgress }: Permissions): string[] {
  const net = [`127.0.0.1:${cdpPort}`, ...sockets.map((path) => `unix:${path}`)];
  return [
    ...DENO_FLAGS,
    `--allow-read=${[...read, ...sockets, tmp].join()}`,
    `--allow-write=${[tmp, ...sockets].join()}`,
    hasEgress ? '--allow-net' : `--allow-net=${net.join()}`,
  ];
}

/** TABERN_DENO_PATH, else this process's own Deno, else the npm package `deno`, else PATH. */
async function findDeno(env: Env, from: string): Promise<string> {
  const wanted = readSetting(env, 'DENO_PATH');
  if (wanted !== undefined) {
    if (isExecutable(wanted)) return programOf(wanted);
    throw new RuntimeNotFound(`TABERN_DENO_PATH: cannot run ${wanted}`);
  }
  const own = OWN_KIND === 'deno' ? process.execPath : undefined;
  const found = [own, npmDeno(from), ...inPath(env)].find((path) => path && isExecutable(path));
  if (found) return programOf(found);
  throw new RuntimeNotFound(
    'TABERN_ENGINE is deno, but there is no Deno here: install the npm package `deno` beside ' +
      'tabern, put `deno` in PATH, or name it in TABERN_DENO_PATH',
  );
}

function npmDeno(from: string): string | undefined {
  try {
    return besides(createRequire(from).resolve('deno/package.json'));
  } catch {
    return undefined; // not installed, or not for this machine
  }
}

/** The platform package contains the program; no install script has to run. */
function besides(file: string): string {
  return join(dirname(createRequire(file).resolve(`${DENO_PACKAGE}/package.json`)), 'deno');
}

/** Resolves a link or npm's script to the program that the jail mounts. */
function programOf(path: string): string {
  const real = realpathSync(path);
  return basename(real) === 'bin.cjs' ? besides(real) : real;
}

function inPath(env: Env): string[] {
  const folders = (env['PATH'] ?? '').split(delimiter);
  return folders.filter(isAbsolute).map((folder) => join(folder, 'deno'));
}

async function versionOf(program: string): Promise<string> {
  try {
    const options = { timeout: VERSION_TIMEOUT_MS, env: DENO_ENV };
    const { stdout } = await promisify(execFile)(program, ['--version'], options);
    const version = /^deno (\d\S*)/.exec(stdout)?.[1];
    if (version !== undefined) return version;
  } catch (cause) {
    throw new RuntimeNotFound(`${program} does not start: ${(cause as Error).message}`, { cause });
  }
  throw new RuntimeNotFound(`${program} is not Deno: it prints no version`);
}
