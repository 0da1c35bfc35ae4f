/**
 * Waits until a service that has just been started for the first time has made its key pairs: a
 * third of a core for some seconds, once in the life of a data directory, and no part of what is
 * measured.
 */
import { readFileSync } from 'node:fs';
import { until } from '../support/poll.ts';

const LOOK_MS = 500;
/** Of CPU in that time: what a service without work takes is far less. */
const BUSY_TICKS = 3;

export async function settled(pid: number): Promise<void> {
  let before = ticksOf(pid);
  let calm = 0;
  await until(
    () => {
      const now = ticksOf(pid);
      calm = now - before <= BUSY_TICKS ? calm + 1 : 0;
      before = now;
      return calm >= 3;
    },
    undefined,
    LOOK_MS,
  );
}

/** CPU used so far, in hundredths of a second. */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
