/**
 * The clock that core schedules by: the wall's time at the start, and from there on the time that
 * passes. Whoever sets the machine's clock while core runs moves no due time, no lease and no
 * streak of failures. Time in which the machine slept has passed too. spec/webhooks.md 3.10.
 */
import { uptime } from 'node:os';

/** In milliseconds: how often sleep is looked for; it costs the reading of a file. */
const LOOK_MS = 1_000;
/** In milliseconds: as long as this the machine's clock must lag before it is believed. Ours. */
const LAG_SETTLED_MS = 600_000;
/** In milliseconds: less is the coarseness of the clocks. */
const SLEPT_MIN_MS = 1_000;
const AHEAD_MIN_MS = 1_000;

export type ClockSources = {
  /** What the machine says it is; anybody may set it. */
  wall: () => number;
  /** What passes while the machine is awake. */
  awake: () => number;
  /** What passes, asleep or awake. */
  sinceBoot: () => number;
};

/** Milliseconds since the machine was started, asleep or awake. Nobody can set it. */
export const sinceBoot = (): number => uptime() * 1_000;

const MACHINE: ClockSources = { wall: Date.now, awake: () => performance.now(), sinceBoot };

/**
 * Unix milliseconds, whole. Never before `floorMs`, the last time that was written: a machine that
 * comes up with an old clock would otherwise wait until it has caught up. A machine that came up
 * with a clock in the future has written such times: once its clock has been behind this one for
 * ten minutes, this one goes at half speed until both are the same.
 */
export function schedulerClock(floorMs: number, sources: ClockSources = MACHINE): () => number {
  const { wall, awake, sinceBoot } = sources;
  const start = { at: Math.max(wall(), floorMs), awake: awake(), sinceBoot: sinceBoot() };
  let base = { at: start.at, awake: start.awake };
  /** How much of what passes may be left out until the next look. */
  let surplusMs = 0;
  let aheadSince: number | undefined;
  let sleptMs = 0;
  const read = (current: number): number => {
    const passedMs = current - base.awake;
    return base.at + passedMs - Math.min(passedMs / 2, surplusMs);
  };

  /** `current`: of the clock that runs while the machine is awake. */
  function look(current: number): void {
    base = { at: read(current), awake: current };
    const missingMs = sinceBoot() - start.sinceBoot - (current - start.awake);
    if (missingMs - sleptMs >= SLEPT_MIN_MS) sleptMs = missingMs;
    const aheadMs = base.at + sleptMs - wall();
    aheadSince = aheadMs > AHEAD_MIN_MS ? (aheadSince ?? current) : undefined;
    const isSettled = aheadSince !== undefined && current - aheadSince >= LAG_SETTLED_MS;
    surplusMs = isSettled ? aheadMs : 0;
  }

  return () => {
    const current = awake();
    if (current - base.awake >= LOOK_MS) look(current);
    return Math.floor(read(current) + sleptMs);
  };
}
