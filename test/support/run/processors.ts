/** How long the processors were in use, by all processes and by the kernel, as /proc/stat says. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Of a tick of /proc/stat. */
const MS_PER_TICK = 10;

/** In ticks of all processors. */
export type Use = { busy: number; all: number };

/** Since the start of the machine; undefined where there is no /proc/stat. */
export function processorUse(): Use | undefined {
  try {
    return useOf(readFileSync('/proc/stat', 'latin1'));
  } catch {
    return undefined;
  }
}

/** In ms, of all processors since the start of the machine. */
export function busyMs(): number {
  return (processorUse()?.busy ?? 0) * MS_PER_TICK;
}

/**
 * Since a use before: the part of the processors' time, and how long it would have taken them at
 * full use, which no order of the work can undercut. Undefined where there is no /proc/stat.
 */
export function useSince(before: Use | undefined): { part: number; leastMs: number } | undefined {
  const now = processorUse();
  if (now === undefined || before === undefined) return undefined;
  const [busy, all] = [now.busy - before.busy, now.all - before.all];
  return { part: busy / Math.max(1, all), leastMs: (busy * MS_PER_TICK) / availableParallelism() };
}

/** Of the text of /proc/stat. Time that a host took away is in use. */
export function useOf(stat: string): Use {
  const [, ticks = ''] = /^cpu +(.*)$/m.exec(stat) ?? [];
  // user, nice, system, idle, iowait, irq, softirq, steal; a guest's time is the user's
  const fields = ticks.split(' ').slice(0, 8).map(Number);
  const all = fields.reduce((sum, one) => sum + one, 0);
  return { busy: all - (fields[3] ?? 0) - (fields[4] ?? 0), all };
}
