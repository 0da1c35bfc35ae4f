/**
 * One leased build -> functions, or a cause. download -> unpack -> install -> bundle -> introspect
 * -> upload -> complete.
 *
 * Guarantees: one outcome is reported until the lease is lost, the log contains what the author can
 * do, and the build's directory is removed. The runner reads and runs no file of the project:
 * workers read them in jails, and a function host loads the bundle.
 */
import { join } from 'node:path';
import { ended, step as inStep } from '../../proto/common/tracing.ts';
import type { BuildWork, CompleteBuildRequest } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { sizeText } from '../../proto/terminal/size.ts';
import type { Lease } from '../leases/lease.ts';
import type { Build, BuildDeps, Step } from './build.ts';
import { openPlace } from './build-directory.ts';
import { BuildFailure } from './build-failure.ts';
import { install } from './install/install.ts';
import { readNpmSettings } from './install/npm-config.ts';
import { openBuildLog } from './log.ts';
import { readManifests } from './manifest.ts';
import { download, upload } from './transfer.ts';
import { type BuildWorker, type Bundle, startBuildWorker } from './worker/worker.ts';

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
  const lines = openBuildLog({ lease, id: work.buildId, now, log });
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
  const { lines } = running;
  const { runner, jail } = running.deps;
  await using place = await openPlace(join(runner.runDir, 'builds'), jail);
  const step: Step = { ...running, place };
  await inStep('download', () => download(step, place.archive));
  const { sha256 } = await bundled(step);
  const found = await inStep('introspect', () => introspect(step, { path: place.bundle, sha256 }));
  const manifests = readManifests(found);
  const bundleBlobId = await inStep('upload', () => upload(step, place.bundle));
  const names = manifests.map(({ name }) => JSON.stringify(name)).join(', ');
  lines.line('info', `built ${manifests.length} function(s): ${names}`);
  return { $case: 'success', value: { manifests, bundleBlobId } };
}

/** From the archive to the bundle. Without an installation, one worker runs all steps. */
async function bundled(step: Step): Promise<Bundle> {
  const { work, place, deps } = step;
  const { namesJsr } = await readNpmSettings(deps.env);
  const order = { entrypoint: work.entrypoint, namesJsr };
  await using first = await workerOf(step, { archive: place.archive });
  const { install: wanted } = await inStep('unpack', async () => {
    await first.unpack();
    return await first.read(order);
  });
  const kept = await inStep('install', async () => {
    if (wanted === undefined) return undefined;
    await first[Symbol.asyncDispose]();
    return await install(wanted, step, async () => {
      await using worker = await workerOf(step, {});
      return await worker.read(order);
    });
  });
  if (wanted === undefined) return await inStep('bundle', () => compile(step, first));
  await using second = await workerOf(step, {});
  // before the bundler parses a package
  const bytes = kept && (await second.measure());
  try {
    return await inStep('bundle', () => compile(step, second));
  } finally {
    await second[Symbol.asyncDispose]();
    if (kept && bytes !== undefined) await deps.installed.keep(kept, place.project, bytes);
  }
}

function workerOf(step: Step, more: { archive?: string }): Promise<BuildWorker> {
  const { lines, signal } = step;
  const { project, uid } = step.place;
  const { jail, runner } = step.deps;
  return startBuildWorker({ project, uid, jail, lines, log: runner.log, signal, ...more });
}

async function compile({ work, place, lines }: Step, worker: BuildWorker): Promise<Bundle> {
  lines.line('info', `bundling ${work.entrypoint}`);
  const made = await worker.bundle(work.entrypoint, place.bundle);
  lines.line('info', `bundled, ${sizeText(made.size)}`);
  return made;
}

async function introspect(step: Step, bundle: { path: string; sha256: string }): Promise<unknown> {
  const { work, lines, signal, deps } = step;
  lines.line('info', 'loading the bundle to see which functions it defines');
  const found = await deps.hosts.introspect({
    projectId: work.projectId,
    bundle,
    onLine: ({ level, message }) => lines.line(level, message),
    signal,
  });
  signal.throwIfAborted();
  if (found.ok) return found.manifests;
  // The log has the whole stack, the cause only the line of the error.
  const stack = found.message.split('\n').filter((line) => line.trim() !== '');
  if (stack.length > 1) for (const line of stack) lines.line('error', line);
  const first = stack.find((line) => /^\w*(?:Error|Exception)\b/.test(line)) ?? stack[0] ?? '';
  const problem =
    found.code === 'BUILD_ERROR'
      ? `the entry file cannot be loaded: ${first}`
      : `${first}; end the loop or the await at its top level`;
  throw new BuildFailure(found.code, problem);
}

/** Logs the failure for the author, and once here when the service caused it. */
function failed(error: unknown, { lease, deps, lines }: Build, late: AbortSignal): Outcome {
  const { log, stopped } = deps.runner;
  const isCutShort = lease.lost.aborted || stopped.aborted;
  const { code, message } = asFailure(error, { isCutShort, isLate: late.aborted });
  if (code === 'INTERNAL_ERROR') log.error({ err: error }, 'build failed');
  lines.line('error', `${code}: ${message}`);
  return { $case: 'failure', value: { code, message } };
}

function asFailure(
  error: unknown,
  { isCutShort, isLate }: { isCutShort: boolean; isLate: boolean },
): Pick<BuildFailure, 'code' | 'message'> {
  if (error instanceof BuildFailure) return error;
  const code = 'INTERNAL_ERROR';
  if (isCutShort) return { code, message: 'the service stopped during the build; publish again' };
  if (isLate) {
    const message = 'the build took longer than its limit; its log says at what';
    return { code: 'TIMED_OUT', message };
  }
  const isBusy = error instanceof Fault && error.row.retry === 'yes';
  const problem = isBusy ? 'the service was busy' : 'an unexpected error occurred';
  return { code, message: `${problem}; publish again` };
}
