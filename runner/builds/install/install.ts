/**
 * Installs what a project depends on, into the project's directory: from its lock file, else from
 * package.json's ranges. No program runs but the installer, in a jail where none can start, since
 * a package's metadata may name files of this machine, or addresses of its network. The registry is
 * the operator's, whatever the archive says. All of it ends with the signal, or with the runner.
 */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import type { Env } from '../../../proto/common/env.ts';
import type { Log } from '../../../proto/common/log.ts';
import { readSlowly } from '../../common/flow.ts';
import type { Jail } from '../../jail/jail.ts';
import type { Place } from '../build-directory.ts';
import { BuildFailure } from '../build-failure.ts';
import type { BuildLog } from '../log.ts';
import type { Installed, Kept } from './cache.ts';
import { jsrAdvice } from './deno-project.ts';
import { openInstallWay } from './egress.ts';
import { type Installer, installSpec, withoutPaths } from './jail.ts';
import { npm, pnpm } from './package-managers.ts';
import type { Reading } from './read-build.ts';

export type Install = {
  place: Place;
  projectId: string;
  jail: Jail;
  /** The operator's environment. */
  env: Env;
  installed: Installed;
  log: BuildLog;
  /** The runner's own. */
  ownLog: Log;
  signal: AbortSignal;
  /** Reads the project again, after a lock file was made. */
  reread(): Promise<Reading>;
};

/** `ofJsr`: names of packages of jsr among the dependencies. */
type Asked = Install & { ofJsr: readonly string[] };

const MEND = 'mend what the build log says and publish again';
const CLOSED =
  'an address that the build log names is closed to builds: take the package from a registry, ' +
  'or put its tarball into the project';
/** Ours: of one line; the rest of it is dropped. */
const LINE_MAX_BYTES = 4_096;

/**
 * Gives what to keep under which key, when the build is over. Throws a BuildFailure that says what
 * the author, or the operator, has to do.
 */
export async function install(
  wanted: NonNullable<Reading['install']>,
  options: Install,
): Promise<Kept | undefined> {
  const { place, projectId, installed, log, env } = options;
  const asked = { ...options, ofJsr: wanted.ofJsr };
  let { key } = wanted;
  if (!wanted.npm && !wanted.pnpm) {
    log.line('warn', 'no package-lock.json or pnpm-lock.yaml: newest versions in range are used');
    await run(await npm(env, 'lock'), asked);
    key = (await options.reread()).install?.key;
  }
  const isPnpm = wanted.pnpm && !wanted.npm;
  const command = isPnpm ? await pnpm(env, !wanted.isDropped) : await npm(env, 'ci');
  const kept = key && { projectId, key: withCommand(key, command) };
  const before = kept && (await installed.take(kept, place.project));
  if (before) {
    log.line('info', 'the lock file is as before: dependencies are of an earlier build');
    return before;
  }
  await run(command, asked);
  // pnpm may have made the lock anew, of packages that nobody has checked
  if (isPnpm && wanted.isDropped) await options.reread();
  return kept || undefined;
}

function withCommand(key: string, { file, args }: Installer): string {
  return createHash('sha256')
    .update(JSON.stringify([key, file, args]))
    .digest('hex');
}

async function run(command: Installer, options: Asked): Promise<void> {
  const { log, ofJsr } = options;
  const words = `${basename(command.file)} ${command.args.join(' ')}`;
  log.line('info', `installing dependencies: ${words}`);
  const started = performance.now();
  const { code, isRefused } = await ran(command, options);
  if (code !== 0) {
    const otherwise = ofJsr.length > 0 ? jsrAdvice(ofJsr) : MEND;
    const advice = isRefused ? CLOSED : otherwise;
    throw new BuildFailure('BUILD_ERROR', `the dependencies cannot be installed; ${advice}`);
  }
  log.line('info', `installed in ${((performance.now() - started) / 1_000).toFixed(1)} s`);
}

type Ran = { code: number | null; isRefused: boolean };

/** How it ended; what it prints goes to the build's log as it comes. */
async function ran(installer: Installer, options: Install): Promise<Ran> {
  const { place, jail, env, signal, log, ownLog } = options;
  await using way = await openInstallWay({ jail, env, place, lines: log, log: ownLog });
  const spec = await installSpec(installer, { place, env, way });
  signal.throwIfAborted();
  const { child, exited, kill } = jail.launch(spec);
  signal.addEventListener('abort', kill, { once: true });
  const said = (['stdout', 'stderr'] as const).map((name) => {
    const level = name === 'stdout' ? 'log' : 'warn';
    return eachLine(child[name], (line) => {
      const text = withoutPaths(line, spec.mounts);
      if (text.trim() !== '' && !isNoise(text)) log.line(level, text);
    });
  });
  const { code } = await exited;
  await Promise.all(said);
  signal.removeEventListener('abort', kill);
  signal.throwIfAborted();
  return { code, isRefused: way.isRefused };
}

/** Resolves at the end. Of a line that is too long the beginning. */
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

/** What npm says about the operator's own settings, and of log files that are gone by then. */
function isNoise(line: string): boolean {
  return /^npm (?:warn|WARN) (?:Unknown |config )|A complete log of this run/.test(line);
}
