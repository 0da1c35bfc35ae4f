/**
 * The jail of an installer: the machine's programs and libraries, the operator's npm settings, a
 * proxy as its only network access, and two writable directories, the project's and its own. It has
 * no home and no data directory, so a package cannot name a file of this machine. It may start no
 * process, so no program that a package or its settings name can run.
 */
import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename, delimiter, dirname, isAbsolute } from 'node:path';
import type { Env } from '../../../proto/common/env.ts';
import { OWN_KIND } from '../../functions/runtime.ts';
import { LISTENER_PORT } from '../../jail/egress/listener.ts';
import type { At, JailSpec, Mount } from '../../jail/jail.ts';
import { programMounts } from '../../jail/program-mounts.ts';
import type { Place } from '../build-directory.ts';
import type { InstallEgress } from './egress.ts';
import { settingsFiles } from './npm-config.ts';

const PROJECT = '/build/project';
const HOME = '/build/home';
const SOCKET = '/build/out';
const NODE = '/installer/bin/node';
/**
 * A lock file of pnpm may name any directory of the jail as a package, and pnpm copies it into
 * node_modules. Files of this name are never part of a package (npm-packlist), so the operator's
 * tokens are not copied. Under Landlock no directory around the settings can be listed.
 */
const SETTINGS = '.npmrc';
const USERCONFIG = `/installer/user/${SETTINGS}`;
const GLOBALCONFIG = `/installer/global/${SETTINGS}`;
/** Programs and certificates of the system. The egress resolves host names. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc/alternatives', '/etc/ld.so.cache'];
const TRUSTED = ['/etc/ssl', '/etc/pki'];
const CERTIFICATES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'];
/** Passed from the operator's environment. */
const PASSED = ['npm_config_registry', ...CERTIFICATES];
/** For `noproxy`: npm ignores an empty list, and this name never resolves (RFC 6761). */
const NOTHING = 'nothing.invalid';
const MIB = 1024 * 1024;
const TMP_BYTES = 256 * MIB;
const LIMITS = {
  /** Ours: of one process; npm uses 300 MiB for a thousand packages, and V8 reserves more. */
  dataBytes: 3072 * MIB,
  /** Ours: of the whole jail. */
  memoryBytes: 3072 * MIB,
  fileBytes: 512 * MIB,
  files: 4_096,
  processes: 512,
};
/** Paths of the machine's Node, for a runner under Deno. */
const SYSTEM_PROGRAMS = ['/usr/local/bin', '/usr/bin', '/bin'];
/** No program of the machine has this path. */
const NO_PROGRAM = '/installer/none';
/**
 * Preloaded into the installer: forwards connections from the proxy's port to the egress socket. A
 * separate relay would be a second process, which the jail forbids.
 */
const RELAY = `
import { connect, createServer } from 'node:net';
import { isMainThread } from 'node:worker_threads';
if (isMainThread) {
  const server = createServer((inner) => {
    const outer = connect('${SOCKET}');
    for (const [one, other] of [[inner, outer], [outer, inner]]) {
      one.pipe(other).on('error', () => one.destroy());
      one.on('close', () => other.destroy()).unref();
    }
  });
  await new Promise((resolve) => server.listen(${LISTENER_PORT}, '127.0.0.1', resolve));
  server.unref();
}`;

/** A program of the system, or a script that the runner's Node runs. */
export type Installer = { file: string; args: string[] };

type Around = {
  place: Pick<Place, 'project' | 'home' | 'uid'>;
  env: Env;
  egress: Pick<InstallEgress, 'localPort' | 'socket'>;
};

export async function installSpec(installer: Installer, around: Around): Promise<JailSpec> {
  const { place, env, egress } = around;
  const { localPort, socket } = egress;
  const file = await realpath(installer.file);
  const isSystem = file.startsWith('/usr/');
  const configs = configsOf(env);
  const certificates = CERTIFICATES.flatMap((name) => env[name] ?? []).map(same);
  const mounts = [
    ...[...SYSTEM, ...TRUSTED].map(same),
    ...(await programMounts(process.execPath, NODE)).filter(({ to }) => to === NODE),
    ...(isSystem ? [] : [same(packageOf(file))]),
    ...[...certificates, ...configs].filter(({ from }) => isAbsolute(from)),
  ].filter(({ from }) => existsSync(from));
  const real = mounts.map(async (mount) => ({ ...mount, from: await realpath(mount.from) }));
  const proxy = `http://127.0.0.1:${localPort ?? LISTENER_PORT}`;
  return {
    argv: (at) => [...(isSystem ? [] : [at(NODE)]), at(file), ...installer.args],
    mounts: [
      ...(await Promise.all(real)),
      { from: place.project, to: PROJECT, writable: true },
      { from: place.home, to: HOME, writable: true },
      ...(socket === undefined ? [] : [{ from: socket, to: SOCKET, writable: true }]),
    ],
    env: (at) => ({
      ...environment(at, env, mounts),
      ...proxied(proxy),
      ...(socket === undefined ? {} : { NODE_OPTIONS: preload(RELAY) }),
    }),
    cwd: PROJECT,
    tmpBytes: TMP_BYTES,
    limits: LIMITS,
    stdio: ['ignore', 'pipe', 'pipe'],
    nestedNamespaces: false,
    setsModes: true,
    uid: place.uid,
    ...(localPort === undefined ? {} : { ports: [localPort] }),
  };
}

/** Without a space: Node splits the variable there. */
function preload(script: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(script)}`;
}

/**
 * Replaces paths of the jail and of this machine in an installer's output: of project files the
 * path inside the project remains, of other mounts the name. Landlock jails print the machine's
 * paths.
 */
export function withoutPaths(text: string, mounts: readonly Mount[]): string {
  const roots = mounts.flatMap(({ from, to }) => {
    if (to === PROJECT || to === HOME) return [from, to].map((path) => ({ path, name: '' }));
    const isOwn = from !== to || dirname(to).includes('/node_modules');
    return isOwn ? [from, to].map((path) => ({ path, name: basename(to) })) : [];
  });
  return roots.reduce((output, { path, name }) => {
    return output
      .replaceAll(`file://${path}/`, `${path}/`)
      .replaceAll(`${path}/`, name === '' ? '' : `${name}/`)
      .replaceAll(path, name || '.');
  }, text);
}

function same(path: string): Mount {
  return { from: path, to: path };
}

/** The operator's npm settings: a variable names the file, else npm's default path. */
function configsOf(env: Env): Mount[] {
  const { user, global } = settingsFiles(env);
  const configs = [
    [user, USERCONFIG],
    [global, GLOBALCONFIG],
  ] as const;
  return configs.flatMap(([from, to]) => (from === undefined ? [] : [{ from, to }]));
}

function environment(at: At, env: Env, mounts: readonly Mount[]): Record<string, string> {
  const passed = PASSED.flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const isThere = (path: string): boolean => mounts.some(({ to }) => to === path);
  const home = at(HOME);
  return {
    ...Object.fromEntries(passed),
    ...(isThere(USERCONFIG) ? { npm_config_userconfig: at(USERCONFIG) } : {}),
    ...(isThere(GLOBALCONFIG) ? { npm_config_globalconfig: at(GLOBALCONFIG) } : {}),
    PATH: [dirname(at(NODE)), ...(OWN_KIND === 'deno' ? SYSTEM_PROGRAMS : [])].join(delimiter),
    HOME: home,
    TMPDIR: home,
    CI: 'true',
    npm_config_cache: `${home}/npm`,
    npm_config_store_dir: `${home}/pnpm`,
    // otherwise pnpm runs the version that package.json names, or refuses another manager's project
    npm_config_manage_package_manager_versions: 'false',
    npm_config_package_manager_strict: 'false',
    // programs cannot start; these settings give a better error message
    npm_config_ignore_scripts: 'true',
    npm_config_allow_git: 'none', // of npm 11.10 and later
    npm_config_git: NO_PROGRAM,
    npm_config_script_shell: NO_PROGRAM,
    npm_config_node_gyp: NO_PROGRAM,
    npm_config_ignore_pnpmfile: 'true',
    // otherwise pnpm hard-links files of its store
    npm_config_package_import_method: 'copy',
    npm_config_logs_max: '0',
    npm_config_update_notifier: 'false',
  };
}

/** Variables of npm, pnpm and git; they override the proxies in the operator's files. */
function proxied(proxy: string): Record<string, string> {
  return {
    npm_config_proxy: proxy,
    npm_config_https_proxy: proxy,
    npm_config_http_proxy: proxy, // pnpm's
    npm_config_noproxy: NOTHING,
    http_proxy: proxy,
    https_proxy: proxy,
  };
}

/** The directory of a script's package, such as .../node_modules/npm; else the script's own. */
function packageOf(file: string): string {
  for (let dir = dirname(file); dir !== '/'; dir = dirname(dir)) {
    if (basename(dirname(dir)) === 'node_modules') return dir;
  }
  return dirname(file);
}
