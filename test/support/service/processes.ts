/** The processes of this machine, read from /proc, for tests that none is left. Linux only. */
import { readdirSync, readFileSync } from 'node:fs';

/** It becomes the parent of orphans. */
const INIT = 1;

/**
 * `start` is in clock ticks since boot: with the pid it identifies one process, because pids are
 * reused. A terminal sends its Ctrl-C to `group`.
 */
export type Process = {
  pid: number;
  parent: number;
  group: number;
  start: string;
  command: string;
};

/** Every process except zombies. */
export function processes(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processOf(Number(name)) ?? []);
}

/** The process and all its descendants; empty when it has ended. */
export function familyOf(pid: number): Process[] {
  const all = processes();
  const family = all.filter((one) => one.pid === pid);
  for (const member of family) family.push(...all.filter((one) => one.parent === member.pid));
  return family;
}

/** Processes whose parent has ended, and the leader of whose group has ended. */
export function orphans(): Process[] {
  const all = processes();
  const pids = new Set(all.map(({ pid }) => pid));
  return all.filter(({ parent, group }) => parent === INIT && group > 0 && !pids.has(group));
}

/** Its children that are processes of that role. */
export function rolesOf(pid: number, role: string): Process[] {
  const isRole = (one: Process) =>
    one.parent === pid && new RegExp(` ${role}\\b`).test(one.command);
  return processes().filter(isRole);
}

/** The variables of the process: `NAME=value`. */
export function settingsOf(pid: number): string[] {
  return read(pid, 'environ').split('\0');
}

/** Those of the processes that still run. */
export function stillRunning(wanted: readonly Process[]): Process[] {
  return wanted.filter(({ pid, start }) => processOf(pid)?.start === start);
}

/** Processes whose command line or environment holds the text; this one is left out. */
export function processesNaming(text: string): Process[] {
  return processes().filter(({ pid, command }) => {
    if (pid === process.pid) return false;
    return command.includes(text) || read(pid, 'environ').includes(text);
  });
}

/** Sends the signal to each process that still runs; a negative `pid` is that of a group. */
export function signalAll(wanted: readonly Pick<Process, 'pid'>[], signal: NodeJS.Signals): void {
  for (const { pid } of wanted) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Sends the signal to all processes of the group, if any is left. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  signalAll([{ pid: -group }], signal); // kill(2): a group is the negative of its leader's pid
}

/** Whether the pid is of a live process. A zombie is not. */
export function isRunning(pid: number): boolean {
  return processOf(pid) !== undefined;
}

/** CPU time of each thread of the process and its descendants, in clock ticks. */
export function ticksOfThreads(pid: number): Map<string, number> {
  const threads = familyOf(pid).flatMap(({ pid: member }) => {
    try {
      return readdirSync(`/proc/${member}/task`).map((thread) => `${member}/task/${thread}`);
    } catch {
      return []; // it has ended since
    }
  });
  return new Map(
    threads.map((thread) => {
      const [, , , , , , , , , , , user, system] = fieldsOf(thread);
      return [thread, Number(user) + Number(system)];
    }),
  );
}

/** TCP ports of this machine with a listener. */
export function listeningPorts(): Set<number> {
  const rows = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) =>
    readFileSync(path, 'utf8').trim().split('\n').slice(1),
  );
  const LISTEN = '0A';
  const fields = rows.map((row) => row.trim().split(/\s+/)).filter((row) => row[3] === LISTEN);
  return new Set(fields.map((row) => Number.parseInt(row[1]?.split(':')[1] ?? '0', 16)));
}

function processOf(pid: number): Process | undefined {
  const fields = fieldsOf(pid);
  const [state, parent, group] = fields;
  const start = fields[19];
  if (start === undefined || state === 'Z' || state === 'X') return undefined;
  const command = read(pid, 'cmdline').replaceAll('\0', ' ').trim();
  return { pid, parent: Number(parent), group: Number(group), start, command };
}

/** Empty when the process has ended: it may end between a listing and a reading. */
function read(pid: number | string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return '';
    throw error;
  }
}

/** Of `stat`, from the state on. */
function fieldsOf(process: number | string): string[] {
  const stat = read(process, 'stat');
  // The name is in parentheses and may hold any character, so the fields are counted from the last
  // one.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}
