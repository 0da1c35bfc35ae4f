/** A list of a log as counts over time, for a timeline. Pure. */
import { type Fold, placeOf } from './fold.ts';
import type { ListName, LogRow } from './model.ts';

/** One number for each part of the width: usual ones, those to look at, and failures. */
export type Lane = Record<Weight, number[]>;
export type Weight = 'done' | 'waiting' | 'failed';

/** In ms, from a command to its answer. Ours: a person notices the wait. */
export const SLOW_MS = 1_000;

/** The rows in equal parts of the width; rows outside of the range count at its ends. */
export function laneOf(list: ListName, rows: readonly LogRow[], fold: Fold, parts: number): Lane {
  const lane: Lane = { done: zeros(parts), waiting: zeros(parts), failed: zeros(parts) };
  for (const row of rows) {
    const counts = lane[weightOf(list, row)];
    const part = Math.min(parts - 1, Math.floor(placeOf(fold, row.at) * parts));
    counts[part] = (counts[part] ?? 0) + 1;
  }
  return lane;
}

/** What a lane makes of a row: slow commands, answers 4xx and warnings are to be looked at. */
export function weightOf(list: ListName, row: LogRow): Weight {
  const { state, code, lengthMs = 0 } = row;
  if (list === 'net') {
    if (state !== 'failed') return 'done';
    return code !== undefined && code >= 400 && code < 500 ? 'waiting' : 'failed';
  }
  if (state === 'failed') return 'failed';
  return state === 'waiting' || (list === 'cdp' && lengthMs > SLOW_MS) ? 'waiting' : 'done';
}

/** The place in `found` of the last row that is not after the time; 0 when all are. */
export function placeAt(rows: readonly LogRow[], found: readonly number[], at: number): number {
  let low = 0;
  let high = found.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[found[middle] ?? 0];
    if (row !== undefined && row.at <= at) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** The place after or before the index, which may be missing itself; -1 or the length at an end. */
export function besides(found: readonly number[], index: number, by: 1 | -1): number {
  if (by < 0) return found.findLastIndex((one) => one < index);
  const next = found.findIndex((one) => one > index);
  return next < 0 ? found.length : next;
}

function zeros(count: number): number[] {
  return Array.from({ length: count }, () => 0);
}
