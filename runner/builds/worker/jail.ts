/**
 * The jail of a build worker: its program with the packages that it imports, and the project. A
 * build has one worker that unpacks the archive, which it also sees, and one that bundles. No
 * network, no data directory, no home.
 */
import { existsSync, readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JailSpec, Mount } from '../../jail/jail.ts';
import { programMounts } from '../../jail/program-mounts.ts';

const NODE = '/bin/node';
const PROJECT = '/build/project';
const ARCHIVE = '/build/archive.tgz';
/** The packages that the program imports. */
const PACKAGES = ['esbuild', 'js-yaml', 'tar'];
const MIB = 1024 * 1024;
const TMP_BYTES = 16 * MIB;
const LIMITS = {
  /** Ours: of each of its two processes; bundling playwright-core takes 150 MiB of esbuild. */
  dataBytes: 2048 * MIB,
  /** Ours: of both processes. */
  memoryBytes: 2560 * MIB,
  /** Ours: a build of playwright-core takes 2. */
  cpuSeconds: 120,
  files: 4_096,
  /** Ours: of one file of a project. */
  fileBytes: 256 * MIB,
  processes: 256,
  /** The runner's threads have priority. */
  nice: 5,
};

export type WorkerPlace = {
  project: string;
  /** For the first worker, which unpacks it. A later worker may only read the project. */
  archive?: string;
  uid?: number | undefined;
};

let ownMounts: Promise<Mount[]> | undefined;

export async function workerSpec({ project, archive, uid }: WorkerPlace): Promise<JailSpec> {
  ownMounts ??= mountsOfProgram();
  const isFirst = archive !== undefined;
  return {
    argv: (at) => [
      at(NODE),
      at('/app/runner/builds/worker/entry.ts'),
      at(PROJECT),
      ...(isFirst ? [at(ARCHIVE)] : []),
    ],
    mounts: [
      ...(await ownMounts),
      { from: project, to: PROJECT, writable: isFirst },
      ...(isFirst ? [{ from: archive, to: ARCHIVE }] : []),
    ],
    env: (at) => ({ HOME: at('/tmp'), TMPDIR: at('/tmp'), LANG: 'C.UTF-8', TZ: 'UTC' }),
    tmpBytes: TMP_BYTES,
    limits: LIMITS,
    stdio: ['pipe', 'pipe', 'pipe'],
    nestedNamespaces: false,
    hasChildren: true, // esbuild
    setsModes: true, // of unpacked files; it runs no code of a tenant
    uid,
  };
}

async function mountsOfProgram(): Promise<Mount[]> {
  const here = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
  const packages = [...packagesFor(PACKAGES, here)];
  const own = [
    { from: here, to: '/app/runner' },
    { from: join(here, '../proto'), to: '/app/proto' },
    { from: join(here, '../package.json'), to: '/app/package.json' },
    ...packages.map(([name, from]) => ({ from, to: `/app/node_modules/${name}` })),
  ];
  const real = own.map(async ({ from, to }) => ({ from: await realpath(from), to }));
  return [...(await programMounts(process.execPath, NODE)), ...(await Promise.all(real))];
}

/** Name -> directory, of these packages and of their dependencies. */
function packagesFor(names: readonly string[], from: string, found = new Map<string, string>()) {
  for (const name of names) {
    if (found.has(name)) continue;
    const dirs = createRequire(join(from, 'x')).resolve.paths(name) ?? [];
    const dir = dirs
      .map((one) => join(one, name))
      .find((one) => existsSync(join(one, 'package.json')));
    if (dir === undefined) continue; // a package of another platform
    if (!dir.startsWith(`${from}/`)) found.set(name, dir); // else mounted with its parent
    const json = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
    packagesFor(Object.keys({ ...json.dependencies, ...json.optionalDependencies }), dir, found);
  }
  return found;
}
