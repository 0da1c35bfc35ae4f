/**
 * What a function host is given in its jail: this Node, our host code and piscina, its own
 * functions and sockets.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Jail, JailSpec, Mount } from './jail/ladder.ts';
import { programMounts } from './jail/libs.ts';

const MIB = 1024 * 1024;
/**
 * In bytes: 560 MiB for Node itself, then per thread 80 for its isolate and 288 of heap. Source:
 * sandbox.md 8.
 */
const DATA_BYTES = (560 + 4 * (80 + 288)) * MIB;
const TMP_BYTES = 64 * MIB;
const FILE_BYTES = 64 * MIB;
const FILES = 1_024;
/** Ours: about 40 are in use with four threads. */
const PROCESSES = 256;
/** Drivers look for it; with an own network it is always free. */
const CDP_PORT = 9222;
const PROXY = 'http://127.0.0.1:3128';
const NOT_PROXIED = `127.0.0.1:${CDP_PORT},localhost:${CDP_PORT}`;

/** Opens a way to the public internet at a socket, for one host. */
export type Outlet = (socketPath: string) => Promise<AsyncDisposable>;

const FLAGS = ['--no-addons', '--disable-sigusr1', '--enable-source-maps', '--disable-warning=*'];
const NODE_FLAGS_LATER = ['--no-experimental-ffi'];

let program: Promise<Mount[]> | undefined;

export async function hostSpec(jail: Jail, dir: string, hasEgress: boolean): Promise<JailSpec> {
  program ??= programMounts(process.execPath, '/bin/node');
  const here = dirname(fileURLToPath(import.meta.url));
  const piscina = join(dirname(createRequire(import.meta.url).resolve('piscina')), '..');
  const own = (name: string): Mount => ({
    from: join(dir, name),
    to: `/run/${name}`,
    writable: true,
  });
  const isAlone = jail.hasOwnNetwork;
  return {
    argv: (at) => [
      at('/bin/node'),
      ...nodeFlags(isAlone && hasEgress),
      at('/app/runner/host/main.ts'),
      at('/run/ctl.sock'),
      at('/run/cdp.sock'),
      String(isAlone ? CDP_PORT : 0),
      isAlone && hasEgress ? at('/run/egress.sock') : '-',
      at('/fn'),
    ],
    mounts: [
      ...(await program),
      { from: join(here, 'host'), to: '/app/runner/host' },
      { from: piscina, to: '/app/node_modules/piscina' },
      { from: join(here, '..', 'package.json'), to: '/app/package.json' },
      { from: join(dir, 'fn'), to: '/fn' },
      own('ctl.sock'),
      own('cdp.sock'),
      ...(isAlone && hasEgress ? [own('egress.sock')] : []),
    ],
    env: (at) => environment(at('/tmp'), isAlone && hasEgress),
    tmpBytes: TMP_BYTES,
    limits: { dataBytes: DATA_BYTES, files: FILES, fileBytes: FILE_BYTES, processes: PROCESSES },
    stdio: ['ignore', 'pipe', 'pipe'],
    nestedNamespaces: false,
  };
}

function environment(tmp: string, hasProxy: boolean): Record<string, string> {
  const own = { HOME: tmp, TMPDIR: tmp, LANG: 'C.UTF-8', TZ: 'UTC', NODE_ENV: 'production' };
  if (!hasProxy) return own;
  return { ...own, HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, NO_PROXY: NOT_PROXIED };
}

function nodeFlags(hasProxy: boolean): string[] {
  const later = NODE_FLAGS_LATER.filter((flag) => process.allowedNodeEnvironmentFlags.has(flag));
  return [...FLAGS, ...later, ...(hasProxy ? ['--use-env-proxy'] : [])];
}
