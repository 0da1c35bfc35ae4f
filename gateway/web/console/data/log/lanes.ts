/** A list of a log as counts over time, for a timeline. Pure. */
import type { LogRow } from './model.ts';

/** `counts` and `failed` have one number for each part of the time. */
export type Lane = { counts: number[]; failed: number[] };
/** Unix milliseconds. */
export type Range = { from: number; to: number };

/** The rows in equal parts of the range; rows outside of it count at its ends. */
export function laneOf(rows: readonly LogRow[], { from, to }: Range, parts: number): Lane {
  const lane = { counts: zeros(parts), failed: zeros(parts) };
  const scale = parts / Math.max(1, to - from);
  for (const { at, state } of rows) {
    const part = Math.min(parts - 1, Math.max(0, Math.floor((at - from) * scale)));
    lane.counts[part] = (lane.counts[part] ?? 0) + 1;
    if (state === 'failed') lane.failed[part] = (lane.failed[part] ?? 0) + 1;
  }
  return lane;
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

function zeros(count: number): number[] {
  return Array.from({ length: count }, () => 0);
}
