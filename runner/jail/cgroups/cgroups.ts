/**
 * A cgroup for each jail, where the service has a delegated subtree (delegated-subtree.ts). The
 * kernel then counts all memory of a jail, including its files in memory, and its processes, shares
 * the CPU between jails instead of threads, and ends a jail as a whole.
 *
 *   <subtree>/service          the service itself
 *   <subtree>/jail-<owner>-<n> a jail, from its start until it is gone
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../../proto/common/log.ts';
import type { JailLimits } from '../prlimit.ts';
import {
  type Controller,
  findSubtree,
  LEAF,
  processesIn,
  type Subtree,
} from './delegated-subtree.ts';

/** Ours: the service gets ten times the weight of a jail, so that relays do not wait for pages. */
const SERVICE_WEIGHT = '1000';
/** Ours: a moved process may have just started another. */
const MOVES_MAX = 10;
/** Ours: a killed Chrome was gone after some ms, its memory freed. */
const REMOVE_TRIES = 40;
const REMOVE_PAUSE_MS = 50;

export type Group = {
  /** Open until `started`: a process that writes 0 to it joins the group. */
  procs: number;
  started(): void;
  /** Whether the kernel ended it for exceeding its memory limit. */
  isOverMemory(): boolean;
  /** Kills all remaining processes and removes the group. Never rejects. */
  end(): Promise<void>;
};

export type Groups = {
  controllers: readonly Controller[];
  /** Undefined after a logged failure: the jail keeps its other limits. */
  open(limits: JailLimits): Group | undefined;
};

type GroupOptions = {
  /** This runner, as part of the names of its groups. */
  owner: string;
  /** Whether another runner is alive: its groups are kept. */
  isAlive(owner: string): Promise<boolean>;
  log: Log;
  /** Detected when absent. */
  subtree?: Subtree | { why: string };
};

/** Prepares the subtree and removes groups of dead runners; or returns why it cannot. */
export async function openGroups(options: GroupOptions): Promise<Groups | { why: string }> {
  const { owner, log, subtree = findSubtree() } = options;
  if ('why' in subtree) return subtree;
  try {
    const controllers = divide(subtree);
    if (controllers.length === 0) return { why: 'its controllers cannot be passed on' };
    await sweep(subtree.dir, options);
    return { controllers, open: opener({ dir: subtree.dir, controllers }, owner, log) };
  } catch (error) {
    return { why: `its cgroup cannot be divided: ${(error as Error).message}` };
  }
}

/** Returns the controllers available to groups below it. */
function divide({ dir, controllers }: Subtree): Controller[] {
  const leaf = join(dir, LEAF);
  mkdirSync(leaf, { recursive: true });
  for (let moves = 0; moves < MOVES_MAX; moves += 1) {
    const here = processesIn(dir);
    if (here.length === 0) break;
    for (const pid of here) put(leaf, 'cgroup.procs', String(pid), ['ESRCH']);
  }
  const passed = controllers.filter((name) => {
    put(dir, 'cgroup.subtree_control', `+${name}`, ['EBUSY', 'EINVAL', 'ENOENT']);
    return readFileSync(join(dir, 'cgroup.subtree_control'), 'utf8').includes(name);
  });
  if (passed.includes('cpu')) put(leaf, 'cpu.weight', SERVICE_WEIGHT);
  return passed;
}

async function sweep(dir: string, { owner, isAlive, log }: GroupOptions): Promise<void> {
  for (const name of readdirSync(dir)) {
    const [, other] = /^jail-(.+)-\d+$/.exec(name) ?? [];
    if (other === undefined || other === owner || (await isAlive(other))) continue;
    await remove(join(dir, name), log);
  }
}

function opener({ dir, controllers }: Subtree, owner: string, log: Log): Groups['open'] {
  let count = 0;
  return (limits) => {
    count += 1;
    const group = join(dir, `jail-${owner}-${count}`);
    try {
      mkdirSync(group);
      for (const [file, value] of filesOf(limits, controllers)) put(group, file, value);
      if (existsSync(join(group, 'memory.swap.max'))) put(group, 'memory.swap.max', '0');
      return openGroup(group, log);
    } catch (error) {
      log.error({ error: String(error) }, 'cannot create the cgroup of a jail');
      return undefined;
    }
  };
}

function openGroup(group: string, log: Log): Group {
  const procs = openSync(join(group, 'cgroup.procs'), 'w');
  return {
    procs,
    started: () => closeSync(procs),
    isOverMemory() {
      const path = join(group, 'memory.events');
      const events = existsSync(path) ? readFileSync(path, 'utf8') : '';
      // its own limit was reached, not one of the machine, and it was killed for that
      return /^oom [1-9]/m.test(events) && /^oom_kill [1-9]/m.test(events);
    },
    end: () => remove(group, log),
  };
}

/** The cgroup files for a jail's limits. */
export function filesOf(
  { memoryBytes, processes, nice }: JailLimits,
  controllers: readonly Controller[],
): [file: string, value: string][] {
  const files: [Controller, string, number | undefined][] = [
    ['memory', 'memory.max', memoryBytes],
    // all processes or none: a Chrome that lost some is broken
    ['memory', 'memory.oom.group', memoryBytes && 1],
    ['pids', 'pids.max', processes],
    // nice values of processes count only within their group
    ['cpu', 'cpu.weight.nice', nice],
  ];
  return files.flatMap(([controller, file, value]) =>
    value === undefined || !controllers.includes(controller) ? [] : [[file, String(value)]],
  );
}

async function remove(group: string, log: Log): Promise<void> {
  let failure: unknown;
  for (let tries = 0; tries < REMOVE_TRIES; tries += 1) {
    try {
      await rmdir(group);
      return;
    } catch (error) {
      failure = error; // it still has processes
    }
    end(group);
    await sleep(REMOVE_PAUSE_MS);
  }
  log.warn({ error: String(failure) }, 'cannot remove a cgroup');
}

/** All at once where the kernel can (5.14). */
function end(group: string): void {
  if (existsSync(join(group, 'cgroup.kill'))) put(group, 'cgroup.kill', '1');
  else for (const pid of processesIn(group)) kill(pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** One write is one command to the kernel. `may`: errors to ignore. */
function put(dir: string, file: string, value: string, may: readonly string[] = []): void {
  try {
    writeFileSync(join(dir, file), value);
  } catch (error) {
    if (!may.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}
