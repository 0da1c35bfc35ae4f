/**
 * Runs one build as a runner does, and returns the reports that core receives. A stub of core
 * answers the real clients; the bundle is loaded in this process instead of a jailed host.
 */
import { readdirSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { create } from 'tar';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import type { CompleteBuildRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { type Handlers, local } from '../../../proto/rpc/local.ts';
import { type Clients, SERVICES } from '../../../proto/rpc/services.ts';
import type { BuildDeps } from '../../../runner/builds/build.ts';
import { openInstalled } from '../../../runner/builds/install/cache.ts';
import { runBuild } from '../../../runner/builds/run-build.ts';
import { openJail } from '../../../runner/jail/open.ts';
import type { Lease } from '../../../runner/leases/lease.ts';
import { notBuilt } from '../wire.ts';
import { testLease, testRunner } from './lease.ts';
import { directory } from './project.ts';

export const PROJECTS = join(import.meta.dirname, '../projects');
const LEASE = 'lease-1';
type Files = Record<string, string>;

/** Loads the bundle as a host does, without the jail. */
const here: BuildDeps['hosts'] = {
  async introspect({ bundle }) {
    try {
      const url = `${pathToFileURL(bundle.path).href}?${bundle.sha256}`;
      return { ok: true, manifests: (await import(url)).manifests() };
    } catch (error) {
      return { ok: false, code: 'BUILD_ERROR', message: String(error) };
    }
  },
};

/** A stub of core that records one build. */
function core(archive: Buffer, awayMs: number) {
  const lines: string[] = [];
  const ends: CompleteBuildRequest['outcome'][] = [];
  const stored: Buffer[] = [];
  let firstAt: number | undefined;
  const runners: Partial<Handlers<typeof SERVICES.runners>> = {
    async completeBuild({ outcome }) {
      const isFirst = firstAt === undefined;
      firstAt ??= performance.now();
      const isAway = isFirst || performance.now() - firstAt < awayMs;
      if (isAway) throw new Fault('CORE_UNAVAILABLE', 'starting');
      ends.push(outcome);
      return { accepted: true };
    },
  };
  const append: Lease['append'] = async (entry) => {
    if (entry.kind !== 'lines') throw new Error('not lines');
    const { leaseId, first, lines: given } = entry.lines;
    assert.is(leaseId, LEASE);
    assert.is(first, lines.length, 'lines are numbered without a gap');
    lines.push(...given.map(({ level, message }) => `${level} ${message}`));
    return false;
  };
  const blobs: Handlers<typeof SERVICES.blobs> = {
    beginUpload: async () => ({ upload: undefined }),
    signUpload: notBuilt,
    commitUpload: notBuilt,
    abortUpload: notBuilt,
    async *readBlob() {
      for (let at = 0; at < archive.length; at += 65_536) {
        yield { chunk: archive.subarray(at, at + 65_536) };
      }
    },
    async writeBlob(parts) {
      const chunks: Uint8Array[] = [];
      for await (const { part } of parts) {
        if (part?.$case === 'chunk') chunks.push(part.value);
        else assert.equal(part?.value, { kind: 'BUNDLE', leaseId: LEASE });
      }
      stored.push(Buffer.concat(chunks));
      return { blobId: 'bundle-blob', size: 1, sha256: 'x' };
    },
  };
  const onError = (error: Error) => {
    throw error;
  };
  const rest = Object.fromEntries(Object.keys(SERVICES.runners).map((name) => [name, notBuilt]));
  const clients = {
    runners: local(SERVICES.runners, { ...rest, ...runners } as never, { onError }),
    blobs: local(SERVICES.blobs, blobs, { onError }),
  } as Clients;
  return { clients, append, lines, ends, stored };
}

type Change = Partial<Pick<BuildDeps, 'hosts' | 'installed'>> & {
  /** Aborts when the runner stops. */
  stopped?: AbortSignal;
  timeoutMs?: number;
  /** How long core cannot be reached when the build reports its outcome. */
  awayMs?: number;
  projectId?: string;
  env?: NodeJS.ProcessEnv;
  sandbox?: 'auto' | 'bwrap' | 'landlock' | 'none';
  /** Files in the parent directory of the runner's own directory. */
  beside?: Files;
  /** Instead of the packed folder. */
  archive?: Buffer;
};
const log = openLog({ role: 'test', level: 'silent' });

/** Builds a folder, and checks that no file of it remains. */
export async function build(folder: string, change: Change = {}) {
  const { timeoutMs = 120_000, projectId = 'p', ...more } = change;
  const { env = process.env, sandbox = 'auto', beside = {}, archive, awayMs = 0 } = more;
  const { hosts = here } = more;
  await using temp = directory(beside);
  const file = join(temp.path, 'archive.tgz');
  await create({ gzip: true, cwd: folder, file, portable: true }, ['.']);
  const seen = core(archive ?? (await readFile(file)), awayMs);
  const runDirectory = join(temp.path, 'run');
  await mkdir(runDirectory);
  const ids = { buildId: 'b', projectId, archiveBlobId: 'a' };
  const work = { ...ids, entrypoint: 'index.ts', timeoutMs };
  const jail = await openJail({ sandbox, log });
  const cache = { dir: join(temp.path, 'installs'), now: Date.now, log };
  const installed = change.installed ?? (await openInstalled(cache));
  const began = process.threadCpuUsage();
  const stopped = change.stopped ?? AbortSignal.timeout(120_000);
  const runner = testRunner({ clients: seen.clients, runDir: runDirectory, stopped });
  const deps = { runner, hosts, jail, installed, env };
  await runBuild(work, testLease(LEASE, { append: seen.append }, runner), deps);
  const { user, system } = process.threadCpuUsage(began);
  assert.is(seen.ends.length, 1, 'one report');
  assert.equal(readdirSync(join(runDirectory, 'builds')), [], 'nothing is left');
  const text = seen.lines.join('\n');
  assert.not.match(text, temp.path);
  const outcome = seen.ends[0];
  return {
    text,
    /** Of this thread, which is the runner's: a delay of all its other work. */
    cpuMs: (user + system) / 1_000,
    stored: seen.stored,
    success: outcome?.$case === 'success' ? outcome.value : undefined,
    failure: outcome?.$case === 'failure' ? outcome.value : undefined,
  };
}

export async function buildOf(files: Files, change?: Change) {
  await using project = directory(files);
  return await build(project.path, change);
}

/** The smallest entry file that publishes a function. */
export const DEFINES = `import { defineFn } from 'tabern'; defineFn('one', async () => 1);`;
