/**
 * Waits until a service rests: its key pairs are made, its spare browsers and those of a burst have
 * started, and the sessions before have ended.
 */
import { readFileSync } from 'node:fs';
import { until } from '../../support/poll.ts';
import { ticksOfThreads } from '../../support/service/processes.ts';

const LOOK_MS = 500;
/** Of CPU in that time: an idle service and its browsers take less. */
const BUSY_TICKS = 5;
const CALM_LOOKS = 3;
/** A full stock of spares starts one by one. */
const LIMIT_MS = 120_000;

export async function settled(pid: number): Promise<void> {
  let before = ticksOfThreads(pid);
  let calm = 0;
  await until(
    () => {
      const now = ticksOfThreads(pid);
      let used = 0;
      for (const [thread, ticks] of now) used += ticks - (before.get(thread) ?? 0);
      calm = used <= BUSY_TICKS ? calm + 1 : 0;
      before = now;
      return calm >= CALM_LOOKS;
    },
    LIMIT_MS,
    LOOK_MS,
  );
}

/** CPU used so far, in hundredths of a second. */
export function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
