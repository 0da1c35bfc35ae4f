/**
 * One leased build -> functions, or a cause. download -> unpack -> install -> bundle -> introspect
 * -> upload -> complete.
 *
 * Guarantee: whatever happens, core is told one outcome, the log says what the author can do, and
 * the build's directory is gone. Nothing of the project runs or is read here: workers read it in
 * jails, and the bundle runs in a function host, as its handlers will.
 */
import { join } from 'node:path';
import type { Env } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import { steadyClock } from '../../proto/common/steady-clock.ts';
import { ended, step as inStep } from '../../proto/common/tracing.ts';
import type { BuildWork, CompleteBuildRequest } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import type { Jail } from '../jail/jail.ts';
import { retried } from '../leases/retry.ts';
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

type Step = BuildDeps & { work: BuildWork; leaseId: string; place: Place; lines: BuildLog };
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
    now: steadyClock(),
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

async function build(step: Omit<Step, 'place'>): Promise<Outcome> {
  await using place = await openPlace(join(step.config.runDirectory, 'builds'), step.jail);
  return await steps({ ...step, place });
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
  const { work, place, config } = step;
  const { namesJsr } = await readNpmSettings(config.env);
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
    if (kept && bytes !== undefined) await step.installed.keep(kept, place.project, bytes);
  }
}

function workerOf(step: Step, more: { archive?: string }): Promise<BuildWorker> {
  const { place, jail, lines, log, signal } = step;
  const { project, uid } = place;
  return startBuildWorker({ project, uid, jail, lines, log, signal, ...more });
}

async function installed(
  step: Step,
  wanted: NonNullable<Reading['install']>,
  about: { entrypoint: string; namesJsr: boolean },
): Promise<Kept | undefined> {
  const { work, place, jail, config, lines, log: ownLog, signal } = step;
  const { projectId } = work;
  const { env } = config;
  return await install(wanted, {
    place,
    projectId,
    jail,
    env,
    installed: step.installed,
    log: lines,
    ownLog,
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
  const { work, lines, signal, hosts } = step;
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
