/**
 * Core's clock for scheduling: the machine's time at the start plus the elapsed time, asleep or
 * awake. A change of the machine's clock while core runs moves no due time, no lease and no failure
 * streak. proto/spec/webhooks.md 10. When the machine's clock has differed for ten minutes, core's
 * clock takes one step to it, in either direction, and all stored times take the same step at the
 * same moment (core/store/sqlite/times.ts), so that waiting work is not affected.
 */
import { uptime } from 'node:os';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';

/** In milliseconds: interval of the checks for sleep; a check reads a file. */
const LOOK_MS = 1_000;
/** In milliseconds: smaller differences are the resolution of the clocks. */
const SLEPT_MIN_MS = 1_000;
/** In milliseconds: after a longer jump forward, young rows may look old. */
const JUMP_MIN_MS = 86_400_000;
/** In milliseconds: the time to correct a wrong clock before anything is removed. */
const HELD_MS = 86_400_000;
/** In milliseconds: smaller differences cause no step. */
const OFF_MIN_MS = 10_000;
/** A clock before this was never set, as on a machine without a battery before NTP. */
export const CLOCK_MIN_MS = Date.UTC(2025, 0, 1);

export type ClockSources = {
  /** The machine's time, which may be set at any moment. */
  wall: () => number;
  /** Elapsed time while the machine is awake. */
  awake: () => number;
  /** Elapsed time, asleep or awake. */
  sinceBoot: () => number;
};

/** In Unix milliseconds: stored times move so that `from` becomes `to`. */
export type Step = { from: number; to: number };

export type SchedulerClock = {
  /** Unix milliseconds, whole. */
  now: () => number;
  /** Without the steps, for times in memory. */
  steady: () => number;
  /**
   * Takes the due step, if any. The caller must move the stored times before any other operation.
   */
  step: () => Step | undefined;
  /** Undoes a step whose stored times were not moved; it is due again. */
  undo: (step: Step) => void;
  /** For a day after a jump forward by more than a day: nothing is removed for its age. */
  isHeld: () => boolean;
};

export const HELD = 'the clock went forward by more than a day: nothing is removed for 24 h';

/** Milliseconds since the machine was started, asleep or awake. Cannot be set. */
export const sinceBoot = (): number => uptime() * 1_000;

const MACHINE: ClockSources = { wall: Date.now, awake: () => performance.now(), sinceBoot };

/**
 * Never before `floorMs`, the last stored time: with an old clock at the start of the machine, core
 * would otherwise wait until that time.
 */
export function schedulerClock(
  floorMs: number,
  settleMs: number,
  sources: ClockSources = MACHINE,
): SchedulerClock {
  const { wall, awake, sinceBoot } = sources;
  const start = { at: Math.max(wall(), floorMs), awake: awake(), sinceBoot: sinceBoot() };
  let lookedAt = start.awake;
  let sleptMs = 0;
  let steppedMs = 0;
  /** The difference, and the time since which it is constant. */
  let off: { ms: number; since: number } | undefined;
  const absentMs = floorMs > 0 ? start.at - floorMs : 0;
  let heldUntil = absentMs > JUMP_MIN_MS ? start.at + HELD_MS : 0;

  function steady(): number {
    const current = awake();
    if (current - lookedAt >= LOOK_MS) {
      lookedAt = current;
      const missingMs = sinceBoot() - start.sinceBoot - (current - start.awake);
      if (missingMs - sleptMs >= SLEPT_MIN_MS) sleptMs = missingMs;
    }
    return Math.floor(start.at + current - start.awake + sleptMs);
  }
  const now = () => steady() + steppedMs;

  return {
    now,
    steady,
    step() {
      const [from, to, at] = [now(), Math.floor(wall()), steady()];
      const ms = to - from;
      const isOff = Math.abs(ms) >= OFF_MIN_MS && to >= CLOCK_MIN_MS;
      if (!isOff) off = undefined;
      else if (off === undefined || Math.abs(off.ms - ms) >= OFF_MIN_MS) off = { ms, since: at };
      if (off === undefined || at - off.since < settleMs) return undefined;
      off = undefined;
      steppedMs += ms;
      if (ms > JUMP_MIN_MS) heldUntil = at + HELD_MS;
      return { from, to };
    },
    undo({ from, to }) {
      steppedMs -= to - from;
      off = { ms: to - from, since: Number.NEGATIVE_INFINITY };
    },
    isHeld: () => steady() < heldUntil,
  };
}

/**
 * Checks for due steps while core runs. A step that the store refuses temporarily is retried at the
 * next check. `onFatal` is called when stored times could not be moved for another reason: a
 * restart begins with the stored times.
 */
export function startSteps(options: {
  clock: SchedulerClock;
  store: Pick<Store, 'moveTimes'>;
  disk: { readonly isLow: boolean };
  log: Log;
  /** As `settleMs` of the clock. */
  clockSettleMs: number;
  onFatal: (error: Error) => void;
}): AsyncDisposable {
  const { clock, store, disk, log, clockSettleMs: settleMs, onFatal } = options;
  let hasFailed = false;

  async function take(step: Step): Promise<void> {
    const stepMs = step.to - step.from;
    try {
      await store.moveTimes(step); // sent at once: later operations have the new times
    } catch (error) {
      clock.undo(step);
      if (!isPassing(error)) throw error;
      log.warn({ err: error, stepMs }, 'core’s clock could not be set; retrying');
      return;
    }
    log.warn({ stepMs }, 'core’s clock and all stored times were set');
    if (stepMs > JUMP_MIN_MS) log.warn(HELD);
  }

  async function look(): Promise<void> {
    if (hasFailed) return;
    try {
      const step = clock.step();
      // a step writes, and the remaining room is for running work
      if (step && disk.isLow) clock.undo(step);
      else if (step) await take(step);
    } catch (error) {
      hasFailed = true;
      onFatal(new Error('stored times could not be moved', { cause: error }));
    }
  }

  return periodically(settleMs / 10, look, { log, failure: 'reading the clock failed' });
}

/** The store answered with a refusal. */
function isPassing(error: unknown): boolean {
  return error instanceof Fault && error.reason !== 'OUTCOME_UNKNOWN';
}
