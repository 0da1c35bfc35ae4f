/** Waits of commits for the disk: the 95th percentile of the last ten minutes. */

const WINDOW_MS = 600_000;
const SAMPLES_MAX = 200;
/** Fewer have no meaningful percentile. An idle service has twice as many, by its heartbeats. */
const SAMPLES_MIN = 10;

export type Syncs = { add(ms: number): void; p95Ms(): number | undefined };

export function openSyncs(at: () => number = () => performance.now()): Syncs {
  const samples: { at: number; ms: number }[] = [];
  return {
    add(ms) {
      samples.push({ at: at(), ms });
      if (samples.length > SAMPLES_MAX) samples.shift();
    },
    p95Ms() {
      const since = at() - WINDOW_MS;
      const recent = samples.filter((one) => one.at >= since).map(({ ms }) => ms);
      if (recent.length < SAMPLES_MIN) return undefined;
      return recent.sort((a, b) => a - b)[Math.ceil(recent.length * 0.95) - 1];
    },
  };
}
