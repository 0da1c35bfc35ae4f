/** The memory that the runner and its browsers may use: the machine's, or a cgroup's (v2). */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { placeOf } from '../jail/cgroups/delegated-subtree.ts';

const LIMITS = ['memory.max', 'memory.high'];

/**
 * In bytes. The limit of a cgroup holds for those below it, and the runner's own is not where a
 * unit or a container has it: so all of them are read, up to the root of the mount.
 */
export function memoryLimit(proc = '/proc/self'): number {
  const own = groupOf(proc);
  // 0 when Node does not know it, as on other systems
  let least = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  for (let dir = own; dir !== undefined; dir = isRoot(dir) ? undefined : dirname(dir)) {
    for (const name of LIMITS) least = Math.min(least, limitIn(join(dir, name)));
  }
  return least;
}

function groupOf(proc: string): string | undefined {
  const path = /^0::(\/.*)$/m.exec(read(join(proc, 'cgroup')))?.[1];
  return path && placeOf(path, read(join(proc, 'mountinfo')));
}

/** The parent of the mount's root is not a cgroup. */
function isRoot(dir: string): boolean {
  return read(join(dirname(dir), 'cgroup.controllers')) === '';
}

function limitIn(path: string): number {
  const text = read(path).trim();
  return /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY; // "max", or no such file
}

/** Empty when there is no such file. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
