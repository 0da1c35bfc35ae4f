/**
 * Installs a project's dependencies into its directory: from the lock file, else from the ranges of
 * package.json. Only the installer runs, in a jail that can start no other process, because a
 * package's metadata may name files or private addresses of this machine. The registry is the
 * operator's, whatever the archive contains. The signal, or the runner's end, ends all of it.
 */
import { hash } from 'node:crypto';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { onAbort } from '../../common/abort.ts';
import { readSlowly } from '../../common/flow.ts';
import type { Step } from '../build.ts';
import { buildError } from '../build-failure.ts';
import type { Kept } from './cache.ts';
import { jsrAdvice } from './deno-project.ts';
import { openInstallEgress } from './egress.ts';
import { type Installer, installSpec, withoutPaths } from './jail.ts';
import { npm, pnpm } from './package-managers.ts';
import type { Reading } from './read-build.ts';

const FIX = 'fix what the build log reports and publish again';
const CLOSED =
  'an address that the build log names is closed to builds: take the package from a registry, ' +
  'or put its tarball into the project';
/** Ours: of one line; the rest is dropped. */
const LINE_MAX_BYTES = 4_096;

/**
 * Returns the cache entry in which the install is kept after the build. `reread` reads the project
 * again after a lock file was generated. Throws a BuildFailure with the author's or the operator's
 * fix.
 */
export async function install(
  wanted: NonNullable<Reading['install']>,
  step: Step,
  reread: () => Promise<Reading>,
): Promise<Kept | undefined> {
  const { place, work, lines, deps } = step;
  const { env, installed } = deps;
  let { key } = wanted;
  if (!wanted.npm && !wanted.pnpm) {
    lines.line('warn', 'no package-lock.json or pnpm-lock.yaml: newest versions in range are used');
    await run(npm(env, 'lock'), step, wanted.ofJsr);
    key = (await reread()).install?.key;
  }
  const isPnpm = wanted.pnpm && !wanted.npm;
  const command = isPnpm ? pnpm(env, !wanted.isDropped) : npm(env, 'ci');
  const kept = key && { projectId: work.projectId, key: withCommand(key, command) };
  const before = kept && (await installed.take(kept, place.project));
  if (before) {
    lines.line('info', 'the lock file is as before: dependencies are of an earlier build');
    return before;
  }
  await run(command, step, wanted.ofJsr);
  // pnpm may have generated the lock file again, with unchecked packages
  if (isPnpm && wanted.isDropped) await reread();
  return kept || undefined;
}

function withCommand(key: string, { file, args }: Installer): string {
  return hash('sha256', JSON.stringify([key, file, args]));
}

/** `ofJsr`: names of the packages of jsr among the dependencies. */
async function run(command: Installer, step: Step, ofJsr: readonly string[]): Promise<void> {
  const { line } = step.lines;
  line('info', `installing dependencies: ${basename(command.file)} ${command.args.join(' ')}`);
  const started = performance.now();
  const { code, isRefused } = await ran(command, step);
  if (code !== 0) {
    const otherwise = ofJsr.length > 0 ? jsrAdvice(ofJsr) : FIX;
    const advice = isRefused ? CLOSED : otherwise;
    throw buildError(`the dependencies cannot be installed; ${advice}`);
  }
  line('info', `installed in ${((performance.now() - started) / 1_000).toFixed(1)} s`);
}

type Ran = { code: number | null; isRefused: boolean };

/** Runs the installer; its output is added to the build's log. */
async function ran(installer: Installer, step: Step): Promise<Ran> {
  const { place, deps, lines, signal } = step;
  const { jail, env, runner } = deps;
  await using egress = await openInstallEgress({ jail, env, place, lines, log: runner.log });
  const spec = await installSpec(installer, { place, env, egress });
  signal.throwIfAborted();
  const { child, exited, kill } = jail.launch(spec);
  using _aborting = onAbort(signal, kill);
  const outputs = (['stdout', 'stderr'] as const).map((name) => {
    const level = name === 'stdout' ? 'log' : 'warn';
    return eachLine(child[name], (line) => {
      const text = withoutPaths(line, spec.mounts);
      if (text.trim() !== '' && !isNoise(text)) lines.line(level, text);
    });
  });
  const { code } = await exited;
  await Promise.all(outputs);
  signal.throwIfAborted();
  return { code, isRefused: egress.isRefused };
}

/** Resolves at the stream's end. Long lines are cut. */
function eachLine(stream: Readable | null, take: (line: string) => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (stream === null) return Promise.resolve();
  let held = '';
  const add = (text: string): void => {
    if (held.length < LINE_MAX_BYTES) held += text.slice(0, LINE_MAX_BYTES - held.length);
  };
  readSlowly(stream, (chunk) => {
    const [first = '', ...more] = chunk.toString('utf8').split('\n');
    add(first);
    for (const line of more) {
      take(held);
      held = '';
      add(line);
    }
  });
  stream.on('close', () => {
    take(held);
    resolve();
  });
  return promise;
}

/** npm's warnings of the operator's settings, and names of log files in the build's directory. */
function isNoise(line: string): boolean {
  return /^npm (?:warn|WARN) (?:Unknown |config )|A complete log of this run/.test(line);
}
