/**
 * `tabern` on a terminal, which `script` of util-linux opens: what a person sees, and answers. All
 * streams are that terminal, unless stderr is a file. Killed at the limit.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { moduleCacheEnv } from '../../../proto/common/compile-cache.ts';

const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
/** Of each process, on a loaded machine. */
const LIMIT_MS = 90_000;

export type Seen = {
  /** Everything that was written, with its control sequences; line breaks are \n. */
  text: () => string;
  type: (text: string) => void;
  /** The exit code. */
  ended: Promise<number | null>;
};

/** Without the tester's variables, except those given; a terminal with colours by default. */
export function onTerminal(
  argv: readonly string[],
  {
    env = {},
    cwd = '/',
    stderr,
  }: { env?: Record<string, string>; cwd?: string; stderr?: string } = {},
): Seen {
  const { PATH = '', HOME = '' } = process.env;
  const command = [process.execPath, BIN, ...argv].map(quoted).join(' ');
  const redirected = stderr === undefined ? command : `${command} 2>${quoted(stderr)}`;
  const child = spawn('script', ['-qec', redirected, '/dev/null'], {
    cwd,
    signal: AbortSignal.timeout(LIMIT_MS),
    killSignal: 'SIGKILL',
    env: { PATH, HOME, TERM: 'xterm-256color', ...moduleCacheEnv(), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part.replaceAll('\r\n', '\n');
  });
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return { text: () => text, type: (typed) => void child.stdin.write(typed), ended };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
