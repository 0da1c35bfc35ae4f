/**
 * Finds a subtree of the cgroup tree (v2) in which the service may create groups: one that systemd
 * delegated to a unit, or the root that a container sees. Read-only (cgroups.ts makes changes).
 *
 * Write permission is not sufficient: root has it everywhere, and a user has it in the scope of a
 * terminal.
 */
import { constants, existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { hasAccess } from '../prlimit.ts';
import { parentOf } from './memory-watch.ts';

/** The group of the service's own processes: a cgroup above others may have none itself. */
export const LEAF = 'service';
/** The controllers that limit jails. */
const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
/** Files that must be writable; systemd gives a delegated unit's user exactly these. */
const GIVEN = ['.', 'cgroup.procs', 'cgroup.subtree_control'];

export type Controller = (typeof CONTROLLERS)[number];
export type Subtree = { dir: string; controllers: Controller[] };

/** Or the reason why there is none. `proc` and `uid`: of the process to check. */
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
  if (!GIVEN.every((name) => hasAccess(join(dir, name), constants.W_OK))) {
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
export function placeOf(path: string, mountinfo: string): string | undefined {
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

/** Processes started by the runner, or by its parent under `tabern serve`. */
function isOurs(pid: number): boolean {
  const top = process.send === undefined ? process.pid : process.ppid;
  for (let one = pid; one > 1; one = parentOf(one)) if (one === top) return true;
  return false;
}
