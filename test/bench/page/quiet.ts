/** Whether the machine had nothing else to do: what /proc says, and what refuses a page. */
import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { useOf } from '../../support/run/processors.ts';
import { figuresOf, ROWS, type Row } from '../support/rows.ts';
import { otherProcesses, ticksBetween } from './others.ts';

/** Beyond one of these the page is not written. */
export const BOUNDS = {
  /** Average load of the minute before the run, by core. */
  load: 0.3,
  /** Part of a pause in which some task waited for a processor (PSI). */
  pressure: 0.05,
  /** Part of all processors that was in use in a pause, when nothing of a benchmark runs. */
  busy: 0.1,
  /** The same, by processes that are not the benchmark's, while it measured. */
  others: 0.1,
  spread: 0.5,
  /** With fewer rounds a spread says nothing. */
  roundsMin: 5,
} as const;

/** What ended with the measure before has been cleaned up by then. */
const REST_MS = 1_500;
const PAUSE_MS = 4_000;
/** Ticks in a second, of /proc. */
const TICKS = 100;

/** `pressure` is undefined on a kernel without PSI. All are parts of 1, `load` is by core. */
export type Look =
  | { when: string; load: number }
  | { when: string; pressure: number | undefined; busy: number }
  | { when: string; others: number };

/** What shows that rows were disturbed: a busy machine, or rounds that are far apart. */
export function disturbances(looks: readonly Look[], rows: readonly Row[]): string[] {
  const found = looks.flatMap(busyIn);
  for (const row of rows.filter(({ peer }) => peer === undefined)) {
    const { spread } = figuresOf(row);
    if (spread <= BOUNDS.spread) continue;
    const title = ROWS[row.id].title;
    found.push(`${title}: a spread of ${percent(spread)} is above ${percent(BOUNDS.spread)}`);
  }
  return found;
}

/** Why a page of these rows may not be written; empty when it may. */
export function refusals(looks: readonly Look[], rows: readonly Row[]): string[] {
  const found = disturbances(looks, rows);
  const own = rows.filter(({ peer }) => peer === undefined);
  const rounds = Math.min(...own.map((row) => row.rounds.length));
  if (rounds < BOUNDS.roundsMin) found.push(`fewer than ${BOUNDS.roundsMin} rounds`);
  const lacking = Object.entries(ROWS).filter(([id]) => !own.some((row) => row.id === id));
  if (lacking.length > 0) {
    found.push(`not measured: ${lacking.map(([, { title }]) => title).join('; ')}`);
  }
  if (own.length < rows.length) found.push('peers ran beside it');
  return found;
}

/** What one look at the machine has found to be above a bound. */
export function busyIn(look: Look): string[] {
  const above = (name: string, value: number | undefined, bound: number): string[] =>
    value === undefined || value <= bound
      ? []
      : [`${look.when}: ${name} of ${percent(value)} is above ${percent(bound)}`];
  if ('load' in look) return above('a load by core', look.load, BOUNDS.load);
  if ('others' in look) return above('other processes: a use', look.others, BOUNDS.others);
  return [
    ...above('a pressure', look.pressure, BOUNDS.pressure),
    ...above('a use of the processors', look.busy, BOUNDS.busy),
  ];
}

export function loadNow(when: string): Look {
  return { when, load: (loadavg()[0] ?? 0) / availableParallelism() };
}

/** Waits, and looks at the machine meanwhile. Nothing of a benchmark may run. */
export async function lookAround(when: string): Promise<Look> {
  await pause(REST_MS);
  const [waited, use, at] = [
    waitedMicros(pressureText()),
    useOf(text('/proc/stat')),
    performance.now(),
  ];
  await pause(PAUSE_MS);
  const [waitedNow, useNow] = [waitedMicros(pressureText()), useOf(text('/proc/stat'))];
  const micros = 1_000 * (performance.now() - at);
  const pressure =
    waited === undefined || waitedNow === undefined ? undefined : (waitedNow - waited) / micros;
  const busy = (useNow.busy - use.busy) / Math.max(1, useNow.all - use.all);
  return { when, pressure, busy };
}

/** Of /proc/pressure/cpu: for how long some task has waited. */
export function waitedMicros(pressure: string): number | undefined {
  const [, total] = /^some .*\btotal=(\d+)/m.exec(pressure) ?? [];
  return total === undefined ? undefined : Number(total);
}

/**
 * What other processes use between this call and that of its result. No process of a benchmark runs
 * at either.
 */
export function othersFrom(when: string): () => Look {
  const [before, at] = [otherProcesses(), performance.now()];
  return () => {
    const seconds = (performance.now() - at) / 1_000;
    const ticks = ticksBetween(before, otherProcesses());
    return { when, others: ticks / TICKS / seconds / availableParallelism() };
  };
}

function pressureText(): string {
  return text('/proc/pressure/cpu');
}

/** Empty where the kernel has no such file. */
function text(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function percent(part: number): string {
  return `${(100 * part).toFixed(0)} %`;
}
