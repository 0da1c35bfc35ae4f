/**
 * One leased build -> functions, or a cause. download -> unpack -> install -> bundle -> introspect
 * -> upload -> complete.
 *
 * Guarantees: one outcome is reported until the lease is lost, the log contains what the author can
 * do, and the build's directory is removed. No file of the project is run or read here: workers
 * read them in jails, and the bundle runs in a function host, as its handlers will.
 */
import { join } from 'node:path';
import type { Env } from '../../proto/common/env.ts';
import { ended, step as inStep } from '../../proto/common/tracing.ts';
import type { BuildWork, CompleteBuildRequest } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import type { Jail } from '../jail/jail.ts';
import type { Lease } from '../leases/lease.ts';
import { openPlace, type Place } from './build-directory.ts';
import { BuildFailure } from './build-failure.ts';
import type { Installed, Kept } from './install/cache.ts';
import { install } from './install/install.ts';
import { readNpmSettings } from './install/npm-config.ts';
import type { Reading } from './install/read-build.ts';
import { type BuildLog, type Level, openBuildLog } from './log.ts';
import { readManifests } from './manifest.ts';
import { download, upload } from './transfer.ts';
import { type BuildWorker, type Bundle, startBuildWorker } from './worker/worker.ts';

/** What runs a bundle once to learn what it defines. */
export type Introspector = {
  introspect(request: {
    projectId: string;
    bundle: { path: string; sha256: string };
    onLine: (line: { level: Level; message: string }) => void;
    signal: AbortSignal;
  }): Promise<
    | { ok: true; manifests: unknown }
    | { ok: false; code: 'TIMED_OUT' | 'BUILD_ERROR'; message: string }
  >;
};

export type BuildDeps = {
  runner: RunnerContext;
  hosts: Introspector;
  jail: Jail;
  installed: Installed;
  /** The operator's environment: PATH, and npm's settings as npm_config_*. */
  env: Env;
};

/** One build on its way to its outcome. */
type Build = {
  work: BuildWork;
  lease: Lease;
  deps: BuildDeps;
  lines: BuildLog;
  /** Aborts at the build's time limit, when the lease is lost, or when the runner stops. */
  signal: AbortSignal;
};
type Step = Build & { place: Place };
type Outcome = NonNullable<CompleteBuildRequest['outcome']>;

/**
 * Builds, and reports the outcome. Resolves after cleanup and after the outcome was reported (or
 * the lease was lost). Never rejects for a reason of the build.
 */
export async function runBuild(work: BuildWork, lease: Lease, given: BuildDeps): Promise<void> {
  await lease.acknowledged;
  if (lease.lost.aborted) return;
  const { now, stopped } = given.runner;
  const log = given.runner.log.child({ buildId: work.buildId });
  const deps = { ...given, runner: { ...given.runner, log } };
  const lines = openBuildLog({ lease, now, log });
  const late = AbortSignal.timeout(work.timeoutMs);
  const signal = AbortSignal.any([lease.lost, stopped, late]);
  const running: Build = { work, lease, deps, lines, signal };
  const outcome = await build(running).catch((error: unknown) => failed(error, running, late));
  const isFailure = outcome.$case === 'failure';
  ended(isFailure ? outcome.value.code : 'COMPLETED', isFailure);
  {
    using deadline = lease.reportDeadline();
    await lines.flush(deadline.signal);
  }
  await lease.complete({ kind: 'BUILD', outcome });
}

async function build(running: Build): Promise<Outcome> {
  const { runner, jail } = running.deps;
  await using place = await openPlace(join(runner.runDir, 'builds'), jail);
  return await steps({ ...running, place });
}

async function steps(step: Step): Promise<Outcome> {
  const { place, lines } = step;
  await inStep('download', () => download(step, place.archive));
  const made = await prepared(step);
  const found = { path: place.bundle, sha256: made.sha256 };
  const manifests = readManifests(await inStep('introspect', () => introspect(step, found)));
  const bundleBlobId = await inStep('upload', () => upload(step, place.bundle));
  const names = manifests.map(({ name }) => JSON.stringify(name)).join(', ');
  lines.line('info', `built ${manifests.length} function(s): ${names}`);
  return { $case: 'success', value: { manifests, bundleBlobId } };
}

/** From the archive to the bundle. One worker does it all when there is nothing to install. */
async function prepared(step: Step): Promise<Bundle> {
  const { work, place, deps } = step;
  const { namesJsr } = await readNpmSettings(deps.env);
  const about = { entrypoint: work.entrypoint, namesJsr };
  await using first = await workerOf(step, { archive: place.archive });
  const reading = await inStep('unpack', async () => {
    await first.unpack();
    return await first.read(about);
  });
  const kept = await inStep('install', async () => {
    if (reading.install === undefined) return undefined;
    await first[Symbol.asyncDispose]();
    return await installed(step, reading.install, about);
  });
  if (reading.install === undefined) return await inStep('bundle', () => compile(step, first));
  await using second = await workerOf(step, {});
  // before anything of a package is parsed
  const bytes = kept && (await second.measure());
  try {
    return await inStep('bundle', () => compile(step, second));
  } finally {
    await second[Symbol.asyncDispose]();
    if (kept && bytes !== undefined) await deps.installed.keep(kept, place.project, bytes);
  }
}

function workerOf(step: Step, more: { archive?: string }): Promise<BuildWorker> {
  const { place, deps, lines, signal } = step;
  const { project, uid } = place;
  const { jail, runner } = deps;
  const { log } = runner;
  return startBuildWorker({ project, uid, jail, lines, log, signal, ...more });
}

async function installed(
  step: Step,
  wanted: NonNullable<Reading['install']>,
  about: { entrypoint: string; namesJsr: boolean },
): Promise<Kept | undefined> {
  const { work, place, deps, lines, signal } = step;
  const { projectId } = work;
  const { jail, env, installed: cache, runner } = deps;
  return await install(wanted, {
    place,
    projectId,
    jail,
    env,
    installed: cache,
    log: lines,
    ownLog: runner.log,
    signal,
    async reread() {
      await using worker = await workerOf(step, {});
      return await worker.read(about);
    },
  });
}

async function compile({ work, place, lines }: Step, worker: BuildWorker): Promise<Bundle> {
  lines.line('info', `bundling ${work.entrypoint}`);
  const made = await worker.bundle(work.entrypoint, place.bundle);
  lines.line('info', `bundled, ${(made.size / 1024).toFixed(0)} KiB`);
  return made;
}

async function introspect(step: Step, made: { path: string; sha256: string }): Promise<unknown> {
  const { work, lines, signal, deps } = step;
  const { hosts } = deps;
  lines.line('info', 'loading the bundle to see which functions it defines');
  const found = await hosts.introspect({
    projectId: work.projectId,
    bundle: made,
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

/** The failure as the author reads it. Failures that are our fault are logged here, once. */
function failed(error: unknown, { lease, deps, lines }: Build, late: AbortSignal): Outcome {
  const { log, stopped } = deps.runner;
  const isCutShort = lease.lost.aborted || stopped.aborted;
  const failure = asFailure(error, { isCutShort, isLate: late.aborted });
  if (failure.code === 'INTERNAL_ERROR') {
    log.error({ err: error }, 'build failed');
  }
  lines.line('error', `${failure.code}: ${failure.message}`);
  return { $case: 'failure', value: { code: failure.code, message: failure.message } };
}

function asFailure(
  error: unknown,
  { isCutShort, isLate }: { isCutShort: boolean; isLate: boolean },
): BuildFailure {
  if (error instanceof BuildFailure) return error;
  if (isCutShort) {
    return new BuildFailure(
      'INTERNAL_ERROR',
      'the service stopped during the build; publish again',
    );
  }
  if (isLate) {
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
