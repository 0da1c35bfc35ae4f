/**
 * Cleans up after runners that died. All files of a runner that must not outlive it are in
 * run/<pid>-<start time>; the start time distinguishes the runner from another process with a
 * reused pid. Runs before a runner starts its own work.
 */
import { lstat, mkdir, mkdtemp, readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getuid } from 'node:process';
import { removeTree } from '../common/remove.ts';

/** Of makeTempDir; names without a start time come from a system without /proc. */
const TEMP = /^tabern-[a-z]+-(\d+-\d+)-\w{6}$/;

/** Creates this process's own directory and returns its path. */
export async function makeRunDir(runRoot: string): Promise<string> {
  const dir = join(runRoot, `${process.pid}-${await startTime(process.pid)}`);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  return dir;
}

/**
 * Removes the directories of dead runners, after killing every process whose command line names
 * one: bwrap's does, and a jail ends with its bwrap. Returns the removed paths.
 */
export async function sweepRuns(runRoot: string): Promise<string[]> {
  const names = await readdir(runRoot).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const gone: string[] = [];
  for (const name of names) {
    if (!/^\d+-\d+$/.test(name) || (await isAlive(name))) continue;
    gone.push(join(runRoot, name));
  }
  if (gone.length > 0) await killNaming(gone);
  for (const dir of gone) await removeTree(dir);
  return gone;
}

/** Creates a directory for short work of this process, in `TMPDIR`. */
export async function makeTempDir(what: string, root = tmpdir()): Promise<string> {
  return mkdtemp(join(root, `tabern-${what}-${process.pid}-${await startTime(process.pid)}-`));
}

/** Removes those of this user whose process was killed. Returns the removed paths. */
export async function sweepTemp(root = tmpdir()): Promise<string[]> {
  const gone: string[] = [];
  for (const name of await readdir(root)) {
    const [, process] = TEMP.exec(name) ?? [];
    if (process === undefined || (await isAlive(process))) continue;
    const path = join(root, name);
    const found = await lstat(path).catch(() => undefined); // another sweep was faster
    if (found?.isDirectory() && found.uid === getuid?.()) gone.push(path);
  }
  if (gone.length > 0) await killNaming(gone);
  for (const dir of gone) await removeTree(dir);
  return gone;
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

async function killNaming(dirs: readonly string[]): Promise<void> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  for (const pid of pids) {
    if (pid === process.pid) continue;
    const words = (await readOrNothing(`/proc/${pid}/cmdline`)).split('\0');
    const isNaming = dirs.some((dir) => words.some((word) => word.includes(`${dir}/`)));
    if (isNaming) kill(pid);
  }
}

/** A process may be gone, or belong to another user, before it is read. */
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
