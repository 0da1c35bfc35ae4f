/**
 * The build worker, as the runner uses it: a process in a jail that reads all files of a tenant.
 * The runner receives its exit code, short answers and the bytes of a bundle. The answers are
 * untrusted, since the worker parses hostile files: they are bounded and validated.
 *
 * Protocol: one order at a time as a line of JSON, one line of JSON as the answer; the bytes of a
 * bundle follow their answer.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { BUNDLE_MAX_BYTES } from '../../../proto/common/limits.ts';
import type { Log } from '../../../proto/common/log.ts';
import { onAbort } from '../../common/abort.ts';
import { keepTail } from '../../common/flow.ts';
import { Lines } from '../../common/lines.ts';
import type { Jail } from '../../jail/jail.ts';
import { type BuildFailure, buildError } from '../build-failure.ts';
import type { Line, Reading } from '../install/read-build.ts';
import type { BuildLog } from '../log.ts';
import { isObject } from '../read-file.ts';
import type { Made, Measured, Order } from './entry.ts';
import { type WorkerPlace, workerSpec } from './jail.ts';

/** Ours: enough for a build's warnings and the names of its packages. */
const ANSWER_MAX_BYTES = 1024 * 1024;
const TAIL_BYTES = 2_000;
const LEVELS: readonly unknown[] = ['info', 'warn', 'error'];
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
/** The cause of a build whose worker ends during the order. */
const CRASHES: Readonly<Record<Order['act'], string>> = {
  unpack: 'the archive takes too much memory or time to unpack; shrink it',
  read: 'the files that name dependencies take too much memory or time; shrink them',
  measure: 'node_modules takes too much time to look at; use smaller packages',
  bundle:
    'the sources cannot be bundled: the bundler ran out of memory or crashed on them; ' +
    'use simpler sources',
};

export type Bundle = {
  /** Lower-case hex. */
  sha256: string;
  /** In bytes. */
  size: number;
};

export type BuildWorker = AsyncDisposable & {
  /** Unpacks the archive into the project. */
  unpack(): Promise<void>;
  /** Returns what to install, and prepares the project's files for the installer. */
  read(order: { entrypoint: string; namesJsr: boolean }): Promise<Reading>;
  /** The size of node_modules in bytes; undefined when it must not be cached. */
  measure(): Promise<number | undefined>;
  /** Bundles into the new file `outFile`. The worker's last order. */
  bundle(entrypoint: string, outFile: string): Promise<Bundle>;
};

type Options = WorkerPlace & {
  jail: Jail;
  lines: Pick<BuildLog, 'line'>;
  log: Log;
  signal: AbortSignal;
};

/** Orders throw a BuildFailure, or the signal's reason. */
export async function startBuildWorker(options: Options): Promise<BuildWorker> {
  const { jail, lines, log, signal } = options;
  signal.throwIfAborted();
  const { child, exited, kill, exitReason } = jail.launch(await workerSpec(options));
  const aborting = onAbort(signal, kill);
  const { stdin, stdout, stderr } = child;
  stdin?.on('error', () => undefined); // the end of the answers reports the worker's end
  const tail = stderr ? keepTail(stderr, TAIL_BYTES) : () => '';
  const answers = new Lines(stdout, ANSWER_MAX_BYTES);

  async function crashed(act: Order['act']): Promise<Error> {
    kill();
    const { code, signal: by } = await exited;
    signal.throwIfAborted();
    log.warn({ code, by, why: exitReason?.(), said: tail() }, 'a project crashed its build worker');
    return buildError(CRASHES[act]);
  }

  /** `read` returns undefined for an invalid answer, which ends the worker. */
  async function ask<T>(order: Order, read: (value: unknown) => T | undefined): Promise<T> {
    stdin?.write(`${JSON.stringify(order)}\n`);
    const text = await answers.next().catch(() => undefined);
    signal.throwIfAborted();
    const answer = text === undefined ? undefined : answerOf(text);
    if (answer === undefined) throw await crashed(order.act);
    for (const { level, message } of answer.lines) lines.line(level, message);
    if (answer.failure !== undefined) throw buildError(answer.failure);
    const value = read(answer.value);
    if (value === undefined) throw await crashed(order.act);
    return value;
  }

  async function end(): Promise<void> {
    kill();
    await exited;
    aborting[Symbol.dispose]();
  }

  if ((await answers.next().catch(() => undefined)) === undefined) {
    const { code } = await exited;
    await end();
    signal.throwIfAborted();
    throw new Error(`a build worker did not start (${code}): ${tail()}`);
  }
  return {
    async unpack() {
      await ask({ act: 'unpack' }, () => true);
    },
    read: (order) => ask({ act: 'read', ...order }, readingOf),
    async measure() {
      const { bytes } = await ask({ act: 'measure' }, measuredOf);
      return bytes ?? undefined;
    },
    async bundle(entrypoint, outFile) {
      const { size } = await ask({ act: 'bundle', entrypoint }, madeOf);
      if (size > BUNDLE_MAX_BYTES) throw tooLarge(size);
      const hash = createHash('sha256');
      // a new file, in a directory that no jail sees
      await using out = await open(outFile, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o444);
      const isWhole = await answers.copy(size, async (chunk) => {
        hash.update(chunk);
        await out.writeFile(chunk);
      });
      if (!isWhole) throw await crashed('bundle');
      return { size, sha256: hash.digest('hex') };
    },
    [Symbol.asyncDispose]: end,
  };
}

type Answer = { lines: Line[]; failure: string | undefined; value?: unknown };

/** Undefined for a line that is not an answer. */
function answerOf(text: string): Answer | undefined {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(found)) return undefined;
  const { lines, failure, value } = found;
  if (!Array.isArray(lines)) return undefined;
  const isLine = (line: unknown): boolean =>
    isObject(line) && typeof line['message'] === 'string' && LEVELS.includes(line['level']);
  if (!lines.every(isLine)) return undefined;
  if (failure !== undefined && typeof failure !== 'string') return undefined;
  return { lines, value, failure };
}

/** Copies valid members only: commands and paths contain them. */
function readingOf(value: unknown): Reading | undefined {
  if (!isObject(value)) return undefined;
  const { install } = value;
  if (install === undefined) return {};
  if (!isObject(install)) return undefined;
  const { npm, pnpm, isDropped, ofJsr, key } = install;
  const names = Array.isArray(ofJsr) ? ofJsr.filter((name) => typeof name === 'string') : [];
  const isKey = typeof key === 'string' && /^[0-9a-f]{64}$/.test(key);
  return {
    install: {
      npm: npm === true,
      pnpm: pnpm === true,
      isDropped: isDropped === true,
      ofJsr: names,
      key: isKey ? key : undefined,
    },
  };
}

function measuredOf(value: unknown): Measured | undefined {
  if (!isObject(value)) return undefined;
  const { bytes } = value;
  return bytes === null || isSize(bytes) ? { bytes } : undefined;
}

function madeOf(value: unknown): Made | undefined {
  return isObject(value) && isSize(value['size']) ? { size: value['size'] } : undefined;
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function tooLarge(size: number): BuildFailure {
  const [made, limit] = [size, BUNDLE_MAX_BYTES].map((bytes) => `${(bytes / 1024).toFixed(0)} KiB`);
  return buildError(`the bundle is ${made}, the limit is ${limit}; use smaller packages`);
}
