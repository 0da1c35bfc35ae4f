/**
 * One leased build -> functions, or a cause. download -> unpack -> install -> bundle -> introspect
 * -> upload -> complete.
 *
 * Guarantee: whatever happens, core is told one outcome, the log says what the author can do, and
 * the build's directory is gone. Nothing of the project runs here: the bundle runs in a function
 * host, as its handlers will.
 */
import { mkdir, mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Env } from '../proto/env.ts';
import { Fault } from '../proto/errors.ts';
import type { BuildWork, CompleteBuildRequest } from '../proto/gen/tabern/v1/runners.pb.ts';
import type { Log } from '../proto/log.ts';
import type { CallOptions } from '../proto/rpc.ts';
import type { Clients } from '../proto/services.ts';
import { ended, step as inStep } from '../proto/trace.ts';
import { unpack } from './archive.ts';
import { download, upload } from './build-blobs.ts';
import { type BuildLog, type Level, openBuildLog } from './build-log.ts';
import type { Bundle } from './bundle.ts';
import { BundleError } from './bundle-error.ts';
import { bundleApart } from './bundle-process.ts';
import { BuildFailure } from './failure.ts';
import { install } from './install.ts';
import type { Installed } from './installed.ts';
import type { Jail } from './jail/ladder.ts';
import { readManifests } from './manifest.ts';
import { retried } from './retry.ts';

/**
 * Ours: a bundle that does not settle in this time has an open handle or a loop at its top level.
 */
const INTROSPECT_TIMEOUT_MS = 30_000;
/** In bytes. Source: blobs.proto. */
const BUNDLE_MAX_BYTES = 32 * 1024 * 1024;

/** What runs a bundle once to learn what it defines. */
export type Introspector = {
  introspect(request: {
    projectId: string;
    bundle: { path: string; sha256: string };
    timeoutMs: number;
    onLine: (line: { level: Level; message: string }) => void;
    signal: AbortSignal;
  }): Promise<
    | { ok: true; manifests: unknown }
    | { ok: false; code: 'TIMED_OUT' | 'BUILD_ERROR'; message: string }
  >;
};

export type BuildConfig = {
  /** Of this runner instance: what is in it does not outlive it. */
  runDirectory: string;
  /** The operator's environment: PATH, and what npm is told by npm_config_*. */
  env: Env;
};

export type BuildDeps = {
  clients: Clients;
  /** Carries the runner's token. */
  call: CallOptions;
  hosts: Introspector;
  jail: Jail;
  installed: Installed;
  config: BuildConfig;
  log: Log;
  /** Aborts when the lease is lost or the runner stops. */
  signal: AbortSignal;
};

type Step = BuildDeps & { work: BuildWork; leaseId: string; directory: string; lines: BuildLog };
type Outcome = NonNullable<CompleteBuildRequest['outcome']>;

/**
 * Builds, and tells core how it ended. Resolves when nothing of it is left; never rejects for a
 * reason of the build.
 */
export async function runBuild(work: BuildWork, leaseId: string, deps: BuildDeps): Promise<void> {
  const { clients, call, log } = deps;
  const lines = openBuildLog({
    append: async (first, batch) => {
      await clients.runners.appendLogs({ leaseId, first, lines: batch }, call);
    },
    now: Date.now,
    onError: (error) => log.warn({ err: error, buildId: work.buildId }, 'build log not sent'),
  });
  const late = AbortSignal.timeout(work.timeoutMs);
  const signal = AbortSignal.any([deps.signal, late]);
  const outcome = await build({ ...deps, work, leaseId, lines, signal }).catch((error: unknown) =>
    failed(error, { work, deps, late, lines }),
  );
  const isFailure = outcome.$case === 'failure';
  ended(isFailure ? outcome.value.code : 'COMPLETED', isFailure);
  await lines.close();
  await retried(() => clients.runners.completeBuild({ leaseId, outcome }, call));
}

async function build(step: Omit<Step, 'directory'>): Promise<Outcome> {
  const base = join(step.config.runDirectory, 'builds');
  await mkdir(base, { recursive: true, mode: 0o700 });
  const directory = await realpath(await mkdtemp(join(base, 'build-')));
  try {
    return await steps({ ...step, directory });
  } finally {
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function steps(step: Step): Promise<Outcome> {
  const { work, directory, lines, signal, config, jail, installed, log: ownLog } = step;
  const root = join(directory, 'project');
  await Promise.all([mkdir(root), mkdir(join(directory, 'home'))]);

  const archive = join(directory, 'archive.tgz');
  await inStep('download', () => download(step, archive));
  const { entries } = await inStep('unpack', () => unpack(archive, root, { signal }));
  lines.line('info', `unpacked ${entries} entries`);
  await checkEntrypoint(root, work.entrypoint);

  const { projectId } = work;
  const { env } = config;
  const from = { directory, projectId, jail, env, installed, log: lines, ownLog, signal };
  await inStep('install', () => install(from));

  const outFile = join(directory, 'bundle.mjs');
  const made = await inStep('bundle', () => compile(step, { root, outFile }));
  const found = { path: outFile, sha256: made.sha256 };
  const manifests = readManifests(await inStep('introspect', () => introspect(step, found)));
  const bundleBlobId = await inStep('upload', () => upload(step, outFile));
  const names = manifests.map(({ name }) => JSON.stringify(name)).join(', ');
  lines.line('info', `built ${manifests.length} function(s): ${names}`);
  return { $case: 'success', value: { manifests, bundleBlobId } };
}

async function checkEntrypoint(root: string, entrypoint: string): Promise<void> {
  const found = await stat(join(root, entrypoint)).catch(() => undefined);
  if (found?.isFile()) return;
  throw new BuildFailure(
    'BUILD_ERROR',
    `the archive has no file ${JSON.stringify(entrypoint)}; publish from the project's folder`,
  );
}

async function compile(step: Step, paths: { root: string; outFile: string }): Promise<Bundle> {
  const { work, lines, signal, log } = step;
  lines.line('info', `bundling ${work.entrypoint}`);
  try {
    const made = await bundleApart({ ...paths, entrypoint: work.entrypoint, signal, log });
    for (const warning of made.warnings) lines.line('warn', warning);
    const size = `${(made.size / 1024).toFixed(0)} KiB`;
    if (made.size > BUNDLE_MAX_BYTES) {
      const limit = `${BUNDLE_MAX_BYTES / 1024} KiB`;
      const problem = `the bundle is ${size}, the limit is ${limit}; use smaller packages`;
      throw new BuildFailure('BUILD_ERROR', problem);
    }
    lines.line('info', `bundled, ${size}`);
    return made;
  } catch (error) {
    if (!(error instanceof BundleError)) throw error;
    const [first, ...more] = error.message.split('\n');
    for (const line of [first ?? '', ...more]) lines.line('error', line);
    throw new BuildFailure('BUILD_ERROR', `the sources cannot be bundled: ${first ?? ''}`, error);
  }
}

async function introspect(step: Step, made: { path: string; sha256: string }): Promise<unknown> {
  const { work, lines, signal, hosts } = step;
  lines.line('info', 'loading the bundle to see which functions it defines');
  const found = await hosts.introspect({
    projectId: work.projectId,
    bundle: made,
    timeoutMs: INTROSPECT_TIMEOUT_MS,
    onLine: ({ level, message }) => lines.line(level, message),
    signal,
  });
  signal.throwIfAborted();
  if (found.ok) return found.manifests;
  // A stack is for the log; the cause is one sentence, and the error's own line says most.
  const said = found.message.split('\n').filter((line) => line.trim() !== '');
  if (said.length > 1) for (const line of said) lines.line('error', line);
  const first = said.find((line) => /^\w*(?:Error|Exception)\b/.test(line)) ?? said[0] ?? '';
  const problem =
    found.code === 'BUILD_ERROR'
      ? `the entry file cannot be loaded: ${first}`
      : `${first}; end the loop or the await at its top level`;
  throw new BuildFailure(found.code, problem);
}

/**
 * Every way to fail, as the author reads it. What is our fault is logged here, once, and only here.
 */
function failed(
  error: unknown,
  {
    work,
    deps,
    late,
    lines,
  }: { work: BuildWork; deps: BuildDeps; late: AbortSignal; lines: BuildLog },
): Outcome {
  const failure = asFailure(error, { deps, late });
  if (failure.code === 'INTERNAL_ERROR') {
    deps.log.error({ err: error, buildId: work.buildId }, 'build failed');
  }
  lines.line('error', `${failure.code}: ${failure.message}`);
  return { $case: 'failure', value: { code: failure.code, message: failure.message } };
}

function asFailure(
  error: unknown,
  { deps, late }: { deps: BuildDeps; late: AbortSignal },
): BuildFailure {
  if (error instanceof BuildFailure) return error;
  if (deps.signal.aborted) {
    return new BuildFailure(
      'INTERNAL_ERROR',
      'the service stopped during the build; publish again',
    );
  }
  if (late.aborted) {
    return new BuildFailure(
      'TIMED_OUT',
      'the build took longer than its limit; its log says at what',
    );
  }
  if (error instanceof Fault && error.row.retry === 'yes') {
    return new BuildFailure('INTERNAL_ERROR', 'the service was busy; publish again', error);
  }
  return new BuildFailure('INTERNAL_ERROR', 'an unexpected error occurred; publish again', error);
}
