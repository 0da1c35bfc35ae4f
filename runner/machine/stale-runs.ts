/**
 * Cleans up after dead runners, before a runner starts its own work. A runner's temporary files are
 * in run/<pid>-<start time>; the start time distinguishes the runner from a process with a reused
 * pid.
 */
import { lstat, mkdir, mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getuid } from 'node:process';
import { orMissing } from '../common/errno.ts';
import { removeTree } from '../common/remove.ts';

/** Of makeTempDir; names without a start time come from a system without /proc. */
const TEMP = /^tabern-[a-z]+-(\d+-\d+)-\w{6}$/;

/** Creates this process's own directory and returns its path. */
export async function makeRunDir(runRoot: string): Promise<string> {
  const dir = join(runRoot, `${process.pid}-${await startTime(process.pid)}`);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  return dir;
}

/** Ends the processes of dead runners and removes their directories. Returns the removed paths. */
export async function sweepRuns(runRoot: string): Promise<string[]> {
  const stale: string[] = [];
  for (const name of (await readdir(runRoot).catch(orMissing)) ?? []) {
    if (!/^\d+-\d+$/.test(name) || (await isAlive(name))) continue;
    stale.push(join(runRoot, name));
  }
  return await remove(stale);
}

/** Creates a directory for short work of this process, in `TMPDIR`. */
export async function makeTempDir(what: string, root = tmpdir()): Promise<string> {
  return mkdtemp(join(root, `tabern-${what}-${process.pid}-${await startTime(process.pid)}-`));
}

/** Removes this user's temporary directories of dead processes. Returns the removed paths. */
export async function sweepTemp(root = tmpdir()): Promise<string[]> {
  const stale: string[] = [];
  for (const name of await readdir(root)) {
    const [, process] = TEMP.exec(name) ?? [];
    if (process === undefined || (await isAlive(process))) continue;
    const path = join(root, name);
    const found = await lstat(path).catch(() => undefined); // another sweep may have removed it
    if (found?.isDirectory() && found.uid === getuid?.()) stale.push(path);
  }
  return await remove(stale);
}

/** Whether the runner of this directory name is still running. */
export async function isAlive(name: string): Promise<boolean> {
  const [pid, started] = name.split('-');
  return (await startTime(Number(pid))) === started;
}

/**
 * In clock ticks since boot: field 22 of /proc/<pid>/stat, after the name, which may contain
 * anything.
 */
async function startTime(pid: number): Promise<string | undefined> {
  const stat = await readOrNothing(`/proc/${pid}/stat`);
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const isDead = state === 'Z' || state === 'X' || stat === '';
  return isDead ? undefined : fields[18];
}

async function remove(dirs: string[]): Promise<string[]> {
  if (dirs.length > 0) await killUsers(dirs);
  for (const dir of dirs) await removeTree(dir);
  return dirs;
}

/** Kills all processes with such a path in the command line: bwrap, and the jail ends with it. */
async function killUsers(dirs: readonly string[]): Promise<void> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  for (const pid of pids) {
    if (pid === process.pid) continue;
    const commandLine = await readOrNothing(`/proc/${pid}/cmdline`);
    if (dirs.some((dir) => commandLine.includes(`${dir}/`))) kill(pid);
  }
}

/** Empty when the process has ended or belongs to another user. */
async function readOrNothing(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
