/**
 * Looks for a part of the tree of cgroups (v2) that is the service's own to divide: what systemd
 * delegates to a unit, or what a container sees as its root. It changes nothing (cgroups.ts does).
 *
 * To be writable is not enough: root may write anywhere, and a user in the scope of a terminal.
 */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parentOf } from './memory-watch.ts';

/** Where the service's own processes go: a cgroup that has cgroups below it may have none. */
export const LEAF = 'service';
/** What jails are limited with. */
const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
/** What must be writable; systemd gives a delegated unit's user just these. */
const GIVEN = ['.', 'cgroup.procs', 'cgroup.subtree_control'];

export type Controller = (typeof CONTROLLERS)[number];
export type Subtree = { dir: string; controllers: Controller[] };

/** Or why there is none. `proc` and `uid`: whose. */
export function findSubtree(
  proc = '/proc/self',
  uid = process.getuid?.(),
): Subtree | { why: string } {
  const path = /^0::(.*)$/m.exec(readFileSync(join(proc, 'cgroup'), 'utf8'))?.[1];
  const own = path && placeOf(path, readFileSync(join(proc, 'mountinfo'), 'utf8'));
  if (!own) return { why: 'cgroup v2 is not mounted here' };
  const dir = basename(own) === LEAF ? dirname(own) : own;
  if (!existsSync(join(dir, 'cgroup.type'))) return { why: 'it runs in the root of all cgroups' };
  const isNamespace = path === '/' || path === `/${LEAF}`;
  if (uid === 0 && !isNamespace) return { why: 'root cannot tell whether its cgroup is its own' };
  if (!GIVEN.every((name) => isWritable(join(dir, name)))) {
    return { why: 'its cgroup is not writable (systemd: Delegate=yes)' };
  }
  const has = readFileSync(join(dir, 'cgroup.controllers'), 'utf8').trim().split(' ');
  const controllers = CONTROLLERS.filter((name) => has.includes(name));
  if (controllers.length === 0) return { why: 'its cgroup has no controllers' };
  if (!isNamespace && !processesIn(dir).every(isOurs)) {
    return { why: 'others are in its cgroup' };
  }
  return { dir, controllers };
}

/** The directory of a cgroup; undefined when no mount shows it. */
function placeOf(path: string, mountinfo: string): string | undefined {
  for (const line of mountinfo.split('\n').reverse()) {
    const [, , , root = '', point = ''] = line.split(' ');
    const prefix = root === '/' ? '' : root;
    const isBelow = path === prefix || path.startsWith(`${prefix}/`);
    if (/ - cgroup2 /.test(line) && isBelow)
      return resolve(point, `./${path.slice(prefix.length)}`);
  }
  return undefined;
}

export function processesIn(dir: string): number[] {
  const text = readFileSync(join(dir, 'cgroup.procs'), 'utf8');
  return text.split('\n').filter(Boolean).map(Number);
}

/** The runner and what it has started; under `tabern serve` that, and all it has started. */
function isOurs(pid: number): boolean {
  const top = process.send === undefined ? process.pid : process.ppid;
  for (let one = pid; one > 1; one = parentOf(one)) if (one === top) return true;
  return false;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false; // not there, not ours, or mounted to be read
  }
}
