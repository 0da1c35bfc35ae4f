/** The jail of a function host: its runtime, our host code, piscina, its functions and sockets. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { must } from '../../proto/common/must.ts';
import type { Isolation } from '../host/worker.ts';
import type { Jail, JailSpec, Mount } from '../jail/jail.ts';
import { programMounts } from '../jail/program-mounts.ts';
import { CONTROL_FD, type HostSockets } from './host-sockets.ts';
import type { Runtime } from './runtime.ts';

const MIB = 1024 * 1024;
const TMP_BYTES = 64 * MIB;
const LIMITS = {
  /** 560 MiB for Node itself, then per thread 80 for its isolate and 288 of heap (Node 24). */
  dataBytes: (560 + 4 * (80 + 288)) * MIB,
  files: 1_024,
  fileBytes: 64 * MIB,
  /** Ours: about 40 are in use with four threads. */
  processes: 256,
};
/** The port that drivers try by default; always free in a network namespace. */
const CDP_PORT = 9222;
/** Below Linux's ephemeral ports (32768 on), so that no other process takes it meanwhile. */
const OWN_PORTS = [20_000, 32_000] as const;
/** The same as in runner/host/main.ts. */
const PROXY_PORT = 3128;

const APP = ['/app/runner/host', '/app/node_modules/piscina', '/app/package.json'];

const programs = new Map<string, Promise<Mount[]>>();

/** A host of its own directory, runtime and limits. */
export type HostSpec = {
  jail: Jail;
  runtime: Runtime;
  /** Its own directory, which must not exist yet. */
  dir: string;
  /** For functions that do not set it themselves. */
  isolation: Isolation;
  memoryMaxBytes: number;
};

export async function hostSpec(
  { jail, runtime, dir, isolation, memoryMaxBytes }: HostSpec,
  { ports, ...sockets }: Pick<HostSockets, 'egress' | 'ports'>,
): Promise<JailSpec> {
  const program = `/bin/${runtime.kind}`;
  const isAlone = jail.hasOwnNetwork;
  const hasEgress = (isAlone || ports !== undefined) && sockets.egress !== undefined;
  const socketNames = ['ctl.sock', 'cdp.sock', ...(hasEgress ? ['egress.sock'] : [])];
  const names = ports === undefined ? socketNames : [];
  const cdpPort = ports?.cdp ?? (isAlone ? CDP_PORT : await ownPort(runtime));
  const proxyPort = hasEgress ? (ports?.egress ?? PROXY_PORT) : undefined;
  return {
    argv: (at) => [
      at(program),
      ...runtime.flags({
        read: [...APP, '/fn'].map(at),
        sockets: names.map((name) => at(`/run/${name}`)),
        tmp: at('/tmp'),
        cdpPort,
        hasEgress,
      }),
      at('/app/runner/host/main.ts'),
      ports === undefined ? at('/run/ctl.sock') : String(CONTROL_FD),
      ports === undefined ? at('/run/cdp.sock') : '-',
      String(cdpPort),
      ports === undefined && hasEgress ? at('/run/egress.sock') : '-',
      at('/fn'),
      isolation,
    ],
    mounts: [
      ...(await mountsOf(runtime.program, program)),
      ...appMounts(),
      { from: join(dir, 'fn'), to: '/fn' },
      ...names.map((name) => ({ from: join(dir, name), to: `/run/${name}`, writable: true })),
    ],
    env: (at) => ({ ...environment(at('/tmp'), { runtime, proxyPort, cdpPort }), ...runtime.env }),
    tmpBytes: TMP_BYTES,
    limits: { ...LIMITS, memoryBytes: memoryMaxBytes },
    stdio: ['ignore', 'pipe', 'pipe', ...(ports === undefined ? [] : ['pipe' as const])],
    nestedNamespaces: false,
    ...(ports && { ports: [ports.cdp, ...(ports.egress === undefined ? [] : [ports.egress])] }),
  };
}

/** Cached: ldd is a process of its own. */
function mountsOf(program: string, inside: string): Promise<Mount[]> {
  const known = programs.get(program) ?? programMounts(program, inside);
  programs.set(program, known);
  return known;
}

/** In the order of APP. */
function appMounts(): Mount[] {
  const here = dirname(fileURLToPath(import.meta.url));
  const piscina = join(dirname(createRequire(import.meta.url).resolve('piscina')), '..');
  const froms = [join(here, '../host'), piscina, join(here, '../../package.json')];
  return APP.map((to, index) => ({ from: must(froms[index], to), to }));
}

/** Node listens on any port; Deno needs the permission for its port in advance. */
async function ownPort({ kind }: Runtime): Promise<number> {
  if (kind === 'node') return 0;
  for (;;) {
    const server = createServer();
    server.listen(randomInt(...OWN_PORTS), '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue; // in use
    }
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    return port;
  }
}

/**
 * Deno ignores ports in NO_PROXY: with a port in the entry it would use the proxy for its browser,
 * too. The loopback of a host with a proxy holds only these two ports.
 */
function environment(
  tmp: string,
  options: { runtime: Runtime; proxyPort: number | undefined; cdpPort: number },
): Record<string, string> {
  const { runtime, proxyPort, cdpPort } = options;
  const own = { HOME: tmp, TMPDIR: tmp, LANG: 'C.UTF-8', TZ: 'UTC', NODE_ENV: 'production' };
  if (proxyPort === undefined) return own;
  const proxy = `http://127.0.0.1:${proxyPort}`;
  const port = runtime.kind === 'deno' ? '' : `:${cdpPort}`;
  const direct = `127.0.0.1${port},localhost${port}`;
  return { ...own, HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: direct };
}
