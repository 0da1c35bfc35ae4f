/**
 * Waits until a new service has created its key pairs, which takes a third of a core for some
 * seconds, once for each data directory, and is not measured.
 */
import { readFileSync } from 'node:fs';
import { until } from '../../support/poll.ts';

const LOOK_MS = 500;
/** Of CPU in that time: an idle service takes far less. */
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
export function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
