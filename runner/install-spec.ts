/**
 * What an installer is given in its jail: the machine's programs and libraries, the operator's
 * settings of npm, a proxy as its only way out, and one writable directory, the build's. No home,
 * no data directory: a package that names a file of this machine finds none.
 */
import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename, delimiter, dirname, isAbsolute } from 'node:path';
import type { Env } from '../proto/env.ts';
import { afterInlet, INLET_PORT } from './jail/inlet.ts';
import type { At, JailSpec, Mount } from './jail/ladder.ts';
import { programMounts } from './jail/libs.ts';
import { settingsFiles } from './npm-settings.ts';

/** The build's directory: project/ and home/ are in it. */
const BUILD = '/build';
const NODE = '/installer/bin/node';
const SHELL = '/bin/sh';
const USERCONFIG = '/installer/npmrc';
const GLOBALCONFIG = '/installer/globalrc';
/** Programs of the system, and its certificates. Names are looked up for it (install-way.ts). */
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
/** Up to INLET_FD. */
const INLET = ['ignore', 'ignore', 'ipc'] as const;

/** A program, or a script that our Node runs, with the package that it belongs to. */
export type Installer = { file: string; args: string[] };

type Place = {
  /** The build's directory on this machine. */
  build: string;
  env: Env;
  /** Of the machine's loopback: the way out where the jail has no network of its own. */
  localPort: number | undefined;
};

export async function installSpec(installer: Installer, place: Place): Promise<JailSpec> {
  const { build, env, localPort } = place;
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
  const command = (at: At): string[] => {
    return [...(isSystem ? [] : [at(NODE)]), at(file), ...installer.args];
  };
  const starters = (at: At) => ({ shell: at(SHELL), node: at(NODE) });
  const isOwnNetwork = localPort === undefined;
  const proxy = `http://127.0.0.1:${localPort ?? INLET_PORT}`;
  return {
    argv: (at) => (isOwnNetwork ? afterInlet(starters(at), command(at)) : command(at)),
    mounts: [...(await Promise.all(real)), { from: build, to: BUILD, writable: true }],
    env: (at) => ({ ...environment(at, env, mounts), ...proxied(proxy) }),
    cwd: `${BUILD}/project`,
    tmpBytes: TMP_BYTES,
    limits: { dataBytes: DATA_BYTES, files: FILES, fileBytes: FILE_BYTES, processes: PROCESSES },
    stdio: ['ignore', 'pipe', 'pipe', ...(isOwnNetwork ? INLET : [])],
    nestedNamespaces: false,
    hasChildren: true, // such as git
    setsModes: true,
    ...(isOwnNetwork ? {} : { ports: [localPort] }),
  };
}

/** What is printed, without the directories that only the jail, or only this machine, has. */
export function withoutPaths(text: string, build: string): string {
  const inside = [build, BUILD].flatMap((dir) => [`${dir}/project`, `${dir}/home`]);
  return inside.reduce((said, dir) => said.replaceAll(`${dir}/`, '').replaceAll(dir, '.'), text);
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
  const home = at(`${BUILD}/home`);
  return {
    ...Object.fromEntries(passed),
    ...(isThere(USERCONFIG) ? { npm_config_userconfig: at(USERCONFIG) } : {}),
    ...(isThere(GLOBALCONFIG) ? { npm_config_globalconfig: at(GLOBALCONFIG) } : {}),
    PATH: [dirname(at(NODE)), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
    HOME: home,
    TMPDIR: home,
    CI: 'true',
    npm_config_cache: `${home}/npm`,
    npm_config_store_dir: `${home}/pnpm`,
    // else pnpm fetches and runs the version that package.json names, or refuses another manager's
    npm_config_manage_package_manager_versions: 'false',
    npm_config_package_manager_strict: 'false',
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
