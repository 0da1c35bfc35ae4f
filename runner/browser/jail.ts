/**
 * The jail of a Chrome: the libraries and fonts of the system, the engine, and one writable
 * directory.
 */
import { existsSync, statfsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { LISTENER_PORT, withListener } from '../jail/egress/listener.ts';
import type { At, Jail, JailSpec, Mount } from '../jail/jail.ts';
import { findProgram, type JailLimits } from '../jail/prlimit.ts';
import { programMounts } from '../jail/program-mounts.ts';
import { extensionPlace, type LoadedExtension } from './extension.ts';
import type { Engine } from './find.ts';
import { chromeFlags } from './flags.ts';
import { type Policies, policyMounts } from './policies.ts';

/** Created in each Chrome's directory. */
export const DIRS = ['profile', 'cache', 'downloads', 'uploads', 'home'] as const;

/** Directories of a Chrome as it sees them. */
export type Paths = { downloads: string; uploads: string };

/** No /usr/bin: no programs but the engine and the two that start it. */
const SYSTEM_DIRS = [
  '/usr/lib',
  '/usr/lib64',
  '/lib',
  '/lib64',
  '/usr/share',
  '/etc/fonts',
  '/var/cache/fontconfig', // otherwise it reads every font at each start
  '/etc/ld.so.cache',
];
const SHELL = '/start/sh';
const NODE = '/start/node';
const DATA = '/data';

/** Of /tmp and of /dev/shm each. Ours: a page with many canvases uses hundreds. */
const TMP_BYTES = 512 << 20;
/** Ours: the largest download. */
const FILE_MAX_BYTES = 2 * 1024 ** 3;
/** Processes and threads. Ours: a Chrome with one page has about 150; this stops a fork bomb. */
const PROCESSES_MAX = 4096;
const FILES_MAX = 8192;
const LIMITS = { files: FILES_MAX, fileBytes: FILE_MAX_BYTES, processes: PROCESSES_MAX };
/** For an encoder, so that it delays no session. */
const BACKGROUND_NICE = 10;
/** Below this size, Chrome's shared memory does not fit. */
const SHM_MIN_BYTES = 256 << 20;

export type JailOptions = {
  engine: Engine;
  jail: Jail;
  /** Whether Chrome's own sandbox works in the jail (canNest). */
  hasSandbox: boolean;
  /** Loaded before Chrome is ready; for full Chromium. */
  extensions?: readonly LoadedExtension[] | undefined;
  /** For full Chromium, in bwrap. */
  policies?: Policies | undefined;
  /** Accepts any certificate. */
  ignoreCertificateErrors?: boolean | undefined;
  /** Runs with a lower priority than the Chromes of sessions. */
  isBackground?: boolean;
  /** Limit of memory in use; absent: none. */
  memoryMaxBytes?: number;
};
/** The directories of one Chrome on this machine. */
type Place = JailOptions & { dir: string; profileDir: string };

/** `local` is the listener when the jail has no network namespace. */
export async function chromeSpec(
  place: Place,
  local: Server | undefined,
): Promise<{ spec: JailSpec; paths: Paths }> {
  const { engine, hasSandbox, dir, extensions = [] } = place;
  const port = local === undefined ? LISTENER_PORT : (local.address() as AddressInfo).port;
  const command = (at: At): string[] => [
    at(engine.program),
    ...chromeFlags({
      engine,
      profile: at(`${DATA}/profile`),
      cache: at(`${DATA}/cache`),
      proxyPort: port,
      hasSandbox,
      hasSmallShm: local !== undefined && (!place.jail.hasUnixSockets || hasSmallShm()),
      ignoreCertificateErrors: place.ignoreCertificateErrors ?? false,
      extensions: extensions.map((extension) => at(extensionPlace(extension))),
    }),
  ];
  const mounts = await mountsOf(place);
  const isOwnNetwork = local === undefined;
  const spec: JailSpec = {
    argv: (at) =>
      isOwnNetwork ? withListener({ shell: at(SHELL), node: at(NODE) }, command(at)) : command(at),
    mounts,
    env: (at) => ({
      HOME: at(`${DATA}/home`),
      TMPDIR: at('/tmp'),
      LANG: 'C.UTF-8',
      TZ: 'UTC',
      ...engine.env,
    }),
    tmpBytes: TMP_BYTES,
    limits: limitsOf(place),
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe', ...(isOwnNetwork ? ['ipc' as const] : [])],
    nestedNamespaces: true,
    hasChildren: true,
    ...(isOwnNetwork ? {} : { ports: [port] }),
  };
  const at: At = isOwnNetwork ? (inside) => inside : (inside) => inside.replace(DATA, dir);
  return { spec, paths: { downloads: at(`${DATA}/downloads`), uploads: at(`${DATA}/uploads`) } };
}

async function mountsOf(place: Place): Promise<Mount[]> {
  const { engine, dir, profileDir, extensions = [], policies } = place;
  return [
    ...(await systemMounts(engine)),
    { from: dir, to: DATA, writable: true },
    { from: profileDir, to: `${DATA}/profile`, writable: true },
    // separate mounts: a process in the jail cannot replace them by links
    { from: join(dir, 'downloads'), to: `${DATA}/downloads`, writable: true },
    { from: join(dir, 'uploads'), to: `${DATA}/uploads` },
    ...extensions.map((extension) => ({
      from: extension.dir,
      to: extensionPlace(extension),
      writable: true,
    })),
    ...policyMounts(policies, dir),
  ];
}

function limitsOf({ isBackground, memoryMaxBytes }: Place): JailLimits {
  return {
    ...LIMITS,
    ...(isBackground === true ? { nice: BACKGROUND_NICE } : {}),
    ...(memoryMaxBytes === undefined ? {} : { memoryBytes: memoryMaxBytes }),
  };
}

let starters: Promise<Mount[]> | undefined;

async function systemMounts(engine: Engine): Promise<Mount[]> {
  const dirs = [...SYSTEM_DIRS, engine.home].filter((path) => existsSync(path));
  const whole = await Promise.all(dirs.map(async (to) => ({ from: await realpath(to), to })));
  starters ??= starterMounts();
  const isCovered = ({ to }: Mount): boolean => dirs.some((dir) => to.startsWith(`${dir}/`));
  return [...whole, ...(await starters).filter((mount) => !isCovered(mount))];
}

/** The programs that start Chrome and its listener. */
async function starterMounts(): Promise<Mount[]> {
  const shell = findProgram('sh');
  if (shell === undefined) throw new Error('no sh on this machine');
  const programs = [programMounts(shell, SHELL), programMounts(process.execPath, NODE)];
  const unique = new Map((await Promise.all(programs)).flat().map((mount) => [mount.to, mount]));
  return [...unique.values()];
}

function hasSmallShm(): boolean {
  const path = join('/dev', 'shm');
  if (!existsSync(path)) return true;
  const { bavail, bsize } = statfsSync(path);
  return bavail * bsize < SHM_MIN_BYTES;
}
