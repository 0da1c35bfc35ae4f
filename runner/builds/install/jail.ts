/**
 * What an installer is given in its jail: the machine's programs and libraries, the operator's
 * settings of npm, a proxy as its only way out, and two writable directories, the project's and its
 * own. No home, no data directory: a package that names a file of this machine finds none. It may
 * start no process: whatever a package or its settings name as a program, nothing runs.
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
import type { InstallWay } from './egress.ts';
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
/** Programs of the system, and its certificates. Names are looked up for it (egress.ts). */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc/alternatives', '/etc/ld.so.cache'];
const TRUSTED = ['/etc/ssl', '/etc/pki'];
const CERTIFICATES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'];
/** Of the operator's environment, what says where packages come from. */
const PASSED = ['npm_config_registry', ...CERTIFICATES];
/** Reached without the proxy: a name that is none (RFC 6761), since an empty list is unread. */
const NOTHING = 'nothing.invalid';
const MIB = 1024 * 1024;
/** Ours: of one process; npm takes 300 MiB for a thousand packages, and V8 reserves more. */
const DATA_BYTES = 3072 * MIB;
const TMP_BYTES = 256 * MIB;
const FILE_BYTES = 512 * MIB;
const FILES = 4_096;
const PROCESSES = 512;
/** Ours: of all of it. */
const MEMORY_BYTES = 3072 * MIB;
/** Where npm finds the machine's Node, when the runner is none. */
const SYSTEM_PROGRAMS = ['/usr/local/bin', '/usr/bin', '/bin'];
/** No program of the machine has this path. */
const NO_PROGRAM = '/installer/none';
/**
 * Runs in the installer before it begins: what goes to the proxy's port goes out by the socket. A
 * helper beside it would be a second process, which the jail does not have.
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

/** A program, or a script that our Node runs, with the package that it belongs to. */
export type Installer = { file: string; args: string[] };

type Around = {
  place: Pick<Place, 'project' | 'home' | 'uid'>;
  env: Env;
  way: Pick<InstallWay, 'localPort' | 'socket'>;
};

export async function installSpec(installer: Installer, around: Around): Promise<JailSpec> {
  const { place, env, way } = around;
  const { localPort, socket } = way;
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
    limits: {
      dataBytes: DATA_BYTES,
      memoryBytes: MEMORY_BYTES,
      fileBytes: FILE_BYTES,
      files: FILES,
      processes: PROCESSES,
    },
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
 * What is printed, without the directories that only the jail, or only this machine, has: of the
 * project the path in it, of all else the name. Where a jail has no paths of its own (landlock),
 * what it prints names the machine's.
 */
export function withoutPaths(text: string, mounts: readonly Mount[]): string {
  const roots = mounts.flatMap(({ from, to }) => {
    if (to === PROJECT || to === HOME) return [from, to].map((path) => ({ path, name: '' }));
    const isOwn = from !== to || dirname(to).includes('/node_modules');
    return isOwn ? [from, to].map((path) => ({ path, name: basename(to) })) : [];
  });
  return roots.reduce((said, { path, name }) => {
    return said
      .replaceAll(`file://${path}/`, `${path}/`)
      .replaceAll(`${path}/`, name === '' ? '' : `${name}/`)
      .replaceAll(path, name || '.');
  }, text);
}

function same(path: string): Mount {
  return { from: path, to: path };
}

/** npm's settings of the operator: where a variable says, else npm's own place for them. */
function configsOf(env: Env): Mount[] {
  const { user, global } = settingsFiles(env);
  return [
    ...(user === undefined ? [] : [{ from: user, to: USERCONFIG }]),
    ...(global === undefined ? [] : [{ from: global, to: GLOBALCONFIG }]),
  ];
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
    // else pnpm fetches and runs the version that package.json names, or refuses another manager's
    npm_config_manage_package_manager_versions: 'false',
    npm_config_package_manager_strict: 'false',
    // a program may not start; these say so before it is tried
    npm_config_ignore_scripts: 'true',
    npm_config_allow_git: 'none', // of npm 11.10 and later
    npm_config_git: NO_PROGRAM,
    npm_config_script_shell: NO_PROGRAM,
    npm_config_node_gyp: NO_PROGRAM,
    npm_config_ignore_pnpmfile: 'true',
    // a hard link to its store would be a file that another has, too
    npm_config_package_import_method: 'copy',
    npm_config_logs_max: '0',
    npm_config_update_notifier: 'false',
  };
}

/** What npm, pnpm and git read, before what the operator's files say of proxies. */
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

/** The directory of the package that a script belongs to: .../node_modules/npm, or its parent. */
function packageOf(file: string): string {
  for (let dir = dirname(file); dir !== '/'; dir = dirname(dir)) {
    if (basename(dirname(dir)) === 'node_modules') return dir;
  }
  return dirname(file);
}
