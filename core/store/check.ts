/**
 * Checks the database for damage in a process of its own, whether or not a core uses it: only the
 * end of the process stops a running check. Table by table, because a long read transaction would
 * keep SQLite from truncating its log.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export type Checking = AsyncDisposable & {
  /**
   * Sentences of SQLite; empty when it is whole, or the end came first. Rejects when the check
   * itself failed, which says nothing about the database.
   */
  problems: Promise<string[]>;
};

/** The message of the process. */
export type Checked = { problems: string[] } | { failed: string };

export function startCheck(dir: string): Checking {
  const program = fileURLToPath(new URL('./sqlite/engine/check-process.ts', import.meta.url));
  const child = fork(program, [dir], {
    env: {},
    execArgv: [], // this process's own flags are not for it
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let isOver = false;
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve()); // it could not be started
  });

  async function answer(): Promise<string[]> {
    const said = once(child, 'message') as Promise<[Checked]>;
    const silent = ended.then(() => [{ failed: 'it ended without a word' }] as [Checked]);
    const [checked] = await Promise.race([said, silent]);
    if ('problems' in checked) return checked.problems;
    if (isOver) return [];
    throw new Error(`the check failed: ${checked.failed}`);
  }

  return {
    problems: answer(),
    async [Symbol.asyncDispose]() {
      isOver = true;
      child.kill('SIGKILL');
      await ended;
    },
  };
}
