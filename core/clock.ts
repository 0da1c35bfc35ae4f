/**
 * The clock that core schedules by: the wall's time at the start, and from there on the time that
 * passes. Whoever sets the machine's clock while core runs moves no due time, no lease and no
 * streak of failures. Time in which the machine slept has passed too. spec/webhooks.md 3.10.
 */
import { uptime } from 'node:os';

/** In milliseconds: how often sleep is looked for; it costs the reading of a file. */
const LOOK_MS = 1_000;
/** In milliseconds: less is the coarseness of the clocks. */
const SLEPT_MIN_MS = 1_000;

export type ClockSources = {
  /** What the machine says it is; anybody may set it. */
  wall: () => number;
  /** What passes while the machine is awake. */
  awake: () => number;
  /** What passes, asleep or awake. */
  sinceBoot: () => number;
};

const MACHINE: ClockSources = {
  wall: Date.now,
  awake: () => performance.now(),
  sinceBoot: () => uptime() * 1_000,
};

/**
 * Unix milliseconds, whole. Never before `floorMs`, the last time that was written: a machine that
 * comes up with an old clock would otherwise wait until it has caught up.
 */
export function schedulerClock(floorMs: number, sources: ClockSources = MACHINE): () => number {
  const { wall, awake, sinceBoot } = sources;
  const start = { at: Math.max(wall(), floorMs), awake: awake(), sinceBoot: sinceBoot() };
  let sleptMs = 0;
  let lookedAt = start.awake;
  return () => {
    const current = awake();
    if (current - lookedAt >= LOOK_MS) {
      lookedAt = current;
      const missingMs = sinceBoot() - start.sinceBoot - (current - start.awake);
      if (missingMs - sleptMs >= SLEPT_MIN_MS) sleptMs = missingMs;
    }
    return Math.floor(start.at + (current - start.awake) + sleptMs);
  };
}
