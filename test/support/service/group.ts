/**
 * A command that runs until it is interrupted, in a separate process group, as in a terminal:
 * Ctrl-C reaches all its processes. None of them outlives the scope.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { moduleCacheEnv } from '../../../proto/common/compile-cache.ts';
import { must } from '../../../proto/common/must.ts';
import { until } from '../poll.ts';
import { familyOf, type Process, signalGroup, stillRunning } from './processes.ts';

/** Only a program that never ends reaches this limit. */
const STUBBORN_MS = 120_000;

export type Group = {
  /** The output of both streams. */
  said: () => string;
  hasEnded: () => boolean;
  family: () => Process[];
  /** Sends Ctrl-C; returns the exit code after the command and its descendants have ended. */
  interrupt(): Promise<number | null>;
} & AsyncDisposable;

export function startGroup(
  command: readonly string[],
  options: { cwd: string; env: Record<string, string> },
): Group {
  const [program = '', ...words] = command;
  const child = spawn(program, words, {
    cwd: options.cwd,
    env: { ...moduleCacheEnv(), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const pid = must(child.pid, 'pid');
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (hasEnded()) return;
    const ended = once(child, 'exit');
    signalGroup(pid, signal);
    const stubborn = setTimeout(() => signalGroup(pid, 'SIGKILL'), STUBBORN_MS);
    await ended;
    clearTimeout(stubborn);
  }

  return {
    said: () => text,
    hasEnded,
    family: () => familyOf(pid),
    async interrupt() {
      const family = familyOf(pid);
      await end('SIGINT');
      await until(() => stillRunning(family).length === 0);
      return child.exitCode;
    },
    async [Symbol.asyncDispose]() {
      const family = familyOf(pid);
      await end('SIGINT');
      signalGroup(pid, 'SIGKILL'); // processes left behind are not the subject of the test
      await until(() => stillRunning(family).length === 0);
    },
  };
}
