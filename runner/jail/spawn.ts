/** Starts a process and watches its exit; shared by all backends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { lchownSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../proto/common/log.ts';
import { must } from '../../proto/common/must.ts';
import type { Exit, JailSpec } from './jail.ts';

/** The exit code of a shell for a program that cannot be started. */
const CANNOT_START: Exit = { code: 127, signal: null };

type Command = Pick<JailSpec, 'stdio' | 'group' | 'uid'> & {
  argv: readonly string[];
  env: Record<string, string>;
  cwd: string;
};

/** Never throws for a program that cannot start: it exits 127. */
export function start(command: Command): { child: ChildProcess; exited: Promise<Exit> } {
  const { env, cwd, uid } = command;
  const { argv, stdio } = joining(command);
  const child = spawn(must(argv[0], 'a program'), argv.slice(1), {
    env,
    stdio,
    cwd,
    // a process group of its own can be killed, and does not receive signals to the runner: Ctrl-C
    // in a terminal makes the runner drain, so running jails must not receive it
    detached: true,
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
  const descriptor = stdio.length; // a shell takes one digit: Chrome in bwrap has eight
  const script = `unset PWD; echo 0 >&${descriptor} && exec ${descriptor}>&- && exec "$@"`;
  return { argv: ['/bin/sh', '-c', script, 'sh', ...argv], stdio: [...stdio, group] };
}

/** Changes the owner of a whole tree. Links of an earlier jail are not followed. */
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
