/**
 * The build worker, seen from the runner: a process of ours in a jail, in which everything is read
 * that a tenant has sent. The runner sees its exit code, short answers and the bytes of a bundle.
 * The worker parses what a tenant made, so its answers are a tenant's word: bounded and checked.
 *
 * One order at a time, as a line of JSON, and one line of JSON as the answer; the bytes of a bundle
 * follow their answer.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { BUNDLE_MAX_BYTES } from '../../../proto/common/limits.ts';
import type { Log } from '../../../proto/common/log.ts';
import { keepTail } from '../../common/flow.ts';
import { Lines } from '../../common/lines.ts';
import type { Jail } from '../../jail/jail.ts';
import { BuildFailure } from '../build-failure.ts';
import { isObject } from '../install/project-json.ts';
import type { BuildLog, Level } from '../log.ts';
import type { Made, Measured, Order, Reading } from './entry.ts';
import { type WorkerPlace, workerSpec } from './jail.ts';

/** Ours: what a log takes of one build's warnings, and the names of its packages. */
const ANSWER_MAX_BYTES = 1024 * 1024;
const TAIL_BYTES = 2_000;
const LEVELS: readonly unknown[] = ['info', 'warn', 'error'];
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;

export type Bundle = {
  /** Lower-case hex. */
  sha256: string;
  /** In bytes. */
  size: number;
};

export type BuildWorker = AsyncDisposable & {
  /** Unpacks the archive into the project. */
  unpack(): Promise<void>;
  /** What is to be installed; the project is made ready for it. */
  read(order: { entrypoint: string; namesJsr: boolean }): Promise<Reading>;
  /** The size of node_modules in bytes; undefined when it is nothing to keep. */
  measure(): Promise<number | undefined>;
  /** Bundles into `outFile`, which is new. The worker's last act. */
  bundle(entrypoint: string, outFile: string): Promise<Bundle>;
};

type Options = WorkerPlace & {
  jail: Jail;
  lines: Pick<BuildLog, 'line'>;
  log: Log;
  signal: AbortSignal;
};

/** Its orders throw a BuildFailure, or the signal's reason. */
export async function startBuildWorker(options: Options): Promise<BuildWorker> {
  const { jail, lines, log, signal } = options;
  signal.throwIfAborted();
  const { child, exited, kill, exitReason: why } = jail.launch(await workerSpec(options));
  signal.addEventListener('abort', kill, { once: true });
  const { stdin, stdout, stderr } = child;
  stdin?.on('error', () => undefined); // its end is told by its answers
  const tail = stderr ? keepTail(stderr, TAIL_BYTES) : () => '';
  const answers = new Lines(stdout, ANSWER_MAX_BYTES);

  async function ended(problem: string): Promise<Error> {
    kill();
    const { code, signal: by } = await exited;
    signal.throwIfAborted();
    log.warn({ code, by, why: why?.(), said: tail() }, 'a build worker did not survive a project');
    return new BuildFailure('BUILD_ERROR', problem);
  }

  /** `read` gives undefined for a value that is no answer to the order: that ends the worker. */
  async function ask<T>(
    order: Order,
    problem: string,
    read: (value: unknown) => T | undefined,
  ): Promise<T> {
    stdin?.write(`${JSON.stringify(order)}\n`);
    const text = await answers.next().catch(() => undefined);
    signal.throwIfAborted();
    const answer = text === undefined ? undefined : answerOf(text);
    if (answer === undefined) throw await ended(problem);
    for (const { level, message } of answer.lines) lines.line(level, message);
    if (answer.failure !== undefined) throw new BuildFailure('BUILD_ERROR', answer.failure);
    const value = read(answer.value);
    if (value === undefined) throw await ended(problem);
    return value;
  }

  async function end(): Promise<void> {
    kill();
    await exited;
    signal.removeEventListener('abort', kill);
  }

  if ((await answers.next().catch(() => undefined)) === undefined) {
    const { code } = await exited;
    await end();
    signal.throwIfAborted();
    throw new Error(`a build worker did not start (${code}): ${tail()}`);
  }
  return {
    async unpack() {
      await ask(
        { act: 'unpack' },
        'the archive takes too much memory or time to unpack; shrink it',
        () => true,
      );
    },
    async read(order) {
      const problem = 'the files that name dependencies take too much memory or time; shrink them';
      return await ask({ act: 'read', ...order }, problem, readingOf);
    },
    async measure() {
      const problem = 'node_modules takes too much time to look at; use smaller packages';
      const { bytes } = await ask({ act: 'measure' }, problem, measuredOf);
      return bytes ?? undefined;
    },
    async bundle(entrypoint, outFile) {
      const problem = 'the bundler ran out of memory or crashed on them; use simpler sources';
      const crashed = `the sources cannot be bundled: ${problem}`;
      const { size } = await ask({ act: 'bundle', entrypoint }, crashed, madeOf);
      if (size > BUNDLE_MAX_BYTES) throw tooLarge(size);
      const hash = createHash('sha256');
      // new, in a directory that no jail sees
      await using out = await open(outFile, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o444);
      const isWhole = await answers.copy(size, async (chunk) => {
        hash.update(chunk);
        await out.writeFile(chunk);
      });
      if (!isWhole) throw await ended(crashed);
      return { size, sha256: hash.digest('hex') };
    },
    [Symbol.asyncDispose]: end,
  };
}

type Answer = {
  lines: { level: Level; message: string }[];
  failure?: string;
  value?: unknown;
};

/** Undefined: our program does not speak so. */
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
  const isLine = (line: Partial<Record<string, unknown>> | null): boolean =>
    typeof line?.['message'] === 'string' && LEVELS.includes(line['level']);
  if (!lines.every(isLine)) return undefined;
  if (failure !== undefined && typeof failure !== 'string') return undefined;
  return { lines, value, ...(failure === undefined ? {} : { failure }) };
}

/** Member by member: its words go into commands and paths of ours. */
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
      ...(isKey ? { key } : {}),
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
  const problem = `the bundle is ${made}, the limit is ${limit}; use smaller packages`;
  return new BuildFailure('BUILD_ERROR', problem);
}
