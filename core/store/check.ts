/**
 * Checks the database for damage in a separate process, because only the end of its process stops a
 * running check. A core may use the database. The check reads table by table: a long read
 * transaction would keep SQLite from truncating its log.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export type Checking = AsyncDisposable & {
  /**
   * SQLite's messages; empty when the database is whole, or the check was disposed of. Rejects when
   * the check itself failed, which is no finding about the database.
   */
  problems: Promise<string[]>;
};

/** The message of the process. */
export type Checked = { problems: string[] } | { failed: string };

export function startCheck(dir: string): Checking {
  const program = fileURLToPath(new URL('./sqlite/engine/check-process.ts', import.meta.url));
  const child = fork(program, [dir], {
    env: {},
    execArgv: [], // without the flags of this process
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let isOver = false;
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve()); // the process did not start
  });

  async function answer(): Promise<string[]> {
    const message = once(child, 'message') as Promise<[Checked]>;
    const none = ended.then(() => [{ failed: 'the process ended without a result' }] as [Checked]);
    const [checked] = await Promise.race([message, none]);
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
