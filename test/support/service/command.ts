/** `tabern` as a process: what it prints, and how it ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { moduleCacheEnv } from '../../../proto/common/compile-cache.ts';
import { until } from '../poll.ts';
import { NOTHING_IN_ADVANCE } from './serve.ts';

const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
/** Of each process, on a loaded machine: at its end the process is killed. */
const LIMIT_MS = 90_000;

export type Ended = { code: number | null; out: string; err: string };
export type Run = {
  child: ChildProcess;
  said: { out: string; err: string };
  ended: Promise<Ended>;
};

/** Without the tester's TABERN_* variables, except those given. */
export function tabern(
  argv: readonly string[],
  env: Record<string, string> = {},
  limitMs = LIMIT_MS,
): Run {
  const { PATH = '', HOME = '' } = process.env;
  const own = ['serve', 'core'].includes(argv[0] ?? '') ? NOTHING_IN_ADVANCE : {};
  const child = spawn(process.execPath, [BIN, ...argv], {
    cwd: '/',
    env: { PATH, HOME, ...moduleCacheEnv(), ...own, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: AbortSignal.timeout(limitMs),
    killSignal: 'SIGKILL',
  });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said.err += text;
  });
  const ended = once(child, 'close').then(([code]): Ended => ({ code, ...said }));
  return { child, said, ended };
}

/** A core on that directory, ready; ended with the scope, after `limitMs` at the latest. */
export async function startCore(
  env: Record<string, string>,
  limitMs = LIMIT_MS,
): Promise<AsyncDisposable & { run: Run }> {
  const run = tabern(['core'], env, limitMs);
  await until(() => {
    if (run.child.exitCode !== null) throw new Error(run.said.err);
    return /core\.sock\b/.test(run.said.out);
  }, LIMIT_MS);
  return {
    run,
    async [Symbol.asyncDispose]() {
      run.child.kill('SIGTERM');
      await run.ended;
    },
  };
}
