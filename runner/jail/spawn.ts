/** Starts a process and watches its exit; shared by all backends. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { lchownSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { must } from '../../proto/common/must.ts';
import type { Exit } from './jail.ts';

/** The exit code of a shell for a program that cannot be started. */
const CANNOT_START: Exit = { code: 127, signal: null };

export type Command = {
  argv: readonly string[];
  env: Record<string, string>;
  stdio: StdioOptions;
  cwd?: string;
  uid?: number;
  /**
   * A process group of its own: signals to the runner do not reach it, and the group can be killed.
   */
  ownGroup?: boolean;
  /** The open cgroup.procs of the cgroup that it joins. */
  group?: number | undefined;
};

/** Never throws for a program that cannot start: it exits 127. */
export function start(command: Command): { child: ChildProcess; exited: Promise<Exit> } {
  const { env, cwd, uid, ownGroup = false } = command;
  const { argv, stdio } = joining(command);
  const child = spawn(must(argv[0], 'a program'), argv.slice(1), {
    env,
    stdio,
    detached: ownGroup,
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const { promise: exited, resolve } = Promise.withResolvers<Exit>();
  child.on('exit', (code, signal) => resolve({ code, signal }));
  child.on('error', () => {
    if (child.pid === undefined) resolve(CANNOT_START);
  });
  return { child, exited };
}

/**
 * The process joins the cgroup before anything else: moved later, it might have started others
 * already. The descriptor is the runner's: another uid may use it, and it is closed afterwards.
 */
function joining({ argv, stdio, group }: Command): Pick<Command, 'argv' | 'stdio'> {
  if (group === undefined) return { argv, stdio };
  const all = Array.isArray(stdio) ? stdio : [stdio, stdio, stdio];
  const descriptor = all.length; // a shell takes one digit: Chrome in bwrap has eight
  const script = `unset PWD; echo 0 >&${descriptor} && exec ${descriptor}>&- && exec "$@"`;
  return { argv: ['/bin/sh', '-c', script, 'sh', ...argv], stdio: [...all, group] };
}

/**
 * Changes the owner of a file, a socket or a whole directory tree. Links are not followed: an
 * earlier jail may have left them.
 */
export function chownTree(uid: number, path: string): void {
  lchownSync(path, uid, uid);
  if (!lstatSync(path).isDirectory()) return;
  for (const name of readdirSync(path)) chownTree(uid, join(path, name));
}

/**
 * Sends SIGKILL to a whole process group; no effect when it is gone. Never throws, since timers
 * call it: a root without CAP_KILL may not end a jail of another uid, which is logged.
 */
export function killGroup(pid: number | undefined, log: Log): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return; // it is gone already
    log.error({ err: error, pid }, 'cannot kill the processes of a jail');
  }
}
