/** The processor time of processes that are not this one's. */
import { readdirSync, readFileSync } from 'node:fs';

/** `own` and, of its children that have ended, `children`: in ticks of /proc. */
export type Process = {
  pid: number;
  parent: number;
  start: string;
  own: number;
  /** Undefined when our own processes may be among them. */
  children: number | undefined;
};

/**
 * All but this one and the kernel's. Those that adopt our own processes, which are process 1 and
 * our ancestors, have no time of children here.
 */
export function otherProcesses(): Process[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const all = pids.flatMap((pid) => processOf(Number(pid)) ?? []);
  const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
  const adopt = new Set([1]);
  for (let pid = process.pid; pid > 0; pid = parents.get(pid) ?? 0) adopt.add(pid);
  return all
    .filter(({ pid, parent }) => pid !== process.pid && pid !== 2 && parent !== 2)
    .map((one) => (adopt.has(one.pid) ? { ...one, children: undefined } : one));
}

/**
 * What they used between two lists. A process that has ended in between is in the time of its
 * parent's children, with what it had used before the first list, which does not count.
 */
export function ticksBetween(before: readonly Process[], now: readonly Process[]): number {
  const alive = new Set(now.map(keyOf));
  const earlier = new Map(before.map((one) => [keyOf(one), one]));
  const byPid = new Map(before.map((one) => [one.pid, one]));
  const ended = new Map<number, number>();
  for (const one of before.filter((each) => !alive.has(keyOf(each)))) {
    let parent = byPid.get(one.parent);
    while (parent && !alive.has(keyOf(parent))) parent = byPid.get(parent.parent);
    if (parent) ended.set(parent.pid, (ended.get(parent.pid) ?? 0) + one.own + (one.children ?? 0));
  }
  let ticks = 0;
  for (const one of now) {
    const { own, children } = earlier.get(keyOf(one)) ?? { own: 0, children: 0 };
    ticks += one.own - own;
    // an ancestor that ended has left its children's time to its parent, which was one, too
    if (children === undefined || one.children === undefined) continue;
    ticks += Math.max(0, one.children - children - (ended.get(one.pid) ?? 0));
  }
  return ticks;
}

function keyOf({ pid, start }: Process): string {
  return `${pid} ${start}`;
}

function processOf(pid: number): Process | undefined {
  const stat = statOf(pid);
  if (stat === undefined) return undefined;
  // The name is in parentheses and may hold any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, usersOf = 0, systemOf = 0] = fields.slice(11, 15).map(Number);
  return {
    pid,
    parent: Number(fields[1]),
    start: fields[19] ?? '',
    own: user + system,
    children: usersOf + systemOf,
  };
}

/** Undefined when it has ended since the listing. */
function statOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
}
