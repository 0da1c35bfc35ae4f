/** Results as benchmarks print them. */

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}

/** `title: p50 1.2 ms, p95 3.4 ms`, with the ratio to the baseline's p50 where there is one. */
export function show(title: string, took: readonly number[], plain?: readonly number[]): void {
  const [p50, p95] = [0.5, 0.95].map((part) => quantile(took, part).toFixed(1));
  const ratio = plain && ` = ${(quantile(took, 0.5) / quantile(plain, 0.5)).toFixed(2)}x`;
  console.log(`${title}: p50 ${p50} ms, p95 ${p95} ms${ratio ?? ''}`);
}

/** The time of each run, in milliseconds. */
export async function timed(runs: number, act: () => Promise<void>): Promise<number[]> {
  const took: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const before = performance.now();
    await act();
    took.push(performance.now() - before);
  }
  return took;
}

/** As `timed`, of an act that measures itself: without what it does before and after. */
export async function timesOf(act: () => Promise<number>, runs: number): Promise<number[]> {
  const took: number[] = [];
  while (took.length < runs) took.push(await act());
  return took;
}
