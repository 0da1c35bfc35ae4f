/**
 * The jail of a build worker: our program with the packages that it imports, the project, and for
 * the first worker the archive. No network, no data directory, no home.
 */
import { existsSync, readFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { must } from '../../../proto/common/must.ts';
import type { JailSpec, Mount } from '../../jail/jail.ts';
import { programMounts } from '../../jail/program-mounts.ts';

const NODE = '/bin/node';
const PROJECT = '/build/project';
const ARCHIVE = '/build/archive.tgz';
/** What the program imports, with all that this depends on. */
const PACKAGES = ['esbuild', 'js-yaml', 'tar'];
const MIB = 1024 * 1024;
/** Ours: of each of its two processes; playwright-core takes 150 MiB of esbuild's. */
const DATA_BYTES = 2048 * MIB;
/** Ours: of both together. */
const MEMORY_BYTES = 2560 * MIB;
/** Ours: a build of playwright-core takes 2. */
const CPU_SECONDS = 120;
/** Ours: of one file of a project, and of what is unpacked. */
const FILE_BYTES = 256 * MIB;
const TMP_BYTES = 16 * MIB;
const FILES = 4_096;
const PROCESSES = 256;
/** The runner's threads have the processor first. */
const NICE = 5;

export type WorkerPlace = {
  project: string;
  /** Of the first worker, which unpacks it. A later one may only read the project. */
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
    limits: {
      dataBytes: DATA_BYTES,
      memoryBytes: MEMORY_BYTES,
      cpuSeconds: CPU_SECONDS,
      files: FILES,
      fileBytes: FILE_BYTES,
      processes: PROCESSES,
      nice: NICE,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    nestedNamespaces: false,
    hasChildren: true, // esbuild
    setsModes: true, // of what it unpacks; it runs no code of a tenant
    uid,
  };
}

async function mountsOfProgram(): Promise<Mount[]> {
  const here = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
  const packages = [...packagesFor(PACKAGES, here)];
  const own = [
    ...[here, join(here, '../proto'), join(here, '../package.json')].map((from, index) => {
      return {
        from,
        to: must(['/app/runner', '/app/proto', '/app/package.json'][index], 'a path'),
      };
    }),
    ...packages.map(([name, from]) => ({ from, to: `/app/node_modules/${name}` })),
  ];
  const real = own.map(async ({ from, to }) => ({ from: await realpath(from), to }));
  return [...(await programMounts(process.execPath, NODE)), ...(await Promise.all(real))];
}

/** Name -> directory, of these and of all that they depend on. */
function packagesFor(names: readonly string[], from: string, found = new Map<string, string>()) {
  for (const name of names) {
    if (found.has(name)) continue;
    const dirs = createRequire(join(from, 'x')).resolve.paths(name) ?? [];
    const dir = dirs
      .map((one) => join(one, name))
      .find((one) => existsSync(join(one, 'package.json')));
    if (dir === undefined) continue; // of another platform
    if (!dir.startsWith(`${from}/`)) found.set(name, dir); // else it is mounted with its user
    const json = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
    packagesFor(Object.keys({ ...json.dependencies, ...json.optionalDependencies }), dir, found);
  }
  return found;
}
