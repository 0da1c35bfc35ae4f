/**
 * How long endpoints took to answer, as counts in ranges: small to store and to add up. Pure.
 */

/** The longest time of each range, in milliseconds; the last range has no end. */
export const RANGES_MS = [
  5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500,
  10_000, 15_000,
] as const;

/** A count for each range, and one for longer times. Missing ones are 0. */
export type AnswerTimes = readonly number[];

/** The number of the range that the time is in. */
export function rangeOf(ms: number): number {
  const range = RANGES_MS.findIndex((longest) => ms <= longest);
  return range < 0 ? RANGES_MS.length : range;
}

export function addTimes(one: AnswerTimes, other: AnswerTimes): number[] {
  const length = Math.max(one.length, other.length);
  return Array.from({ length }, (_, n) => (one[n] ?? 0) + (other[n] ?? 0));
}

export function countOf(times: AnswerTimes): number {
  return times.reduce((sum, count) => sum + count, 0);
}

/**
 * The end of the range within which that share of the answers was: at most so many milliseconds.
 * Undefined without answers; infinite when the share includes answers of the last range.
 */
export function withinMs(times: AnswerTimes, share: number): number | undefined {
  const wanted = Math.ceil(countOf(times) * share);
  if (wanted === 0) return undefined;
  let counted = 0;
  const range = times.findIndex((count) => {
    counted += count;
    return counted >= wanted;
  });
  return RANGES_MS[range] ?? Number.POSITIVE_INFINITY;
}
