/**
 * The clock that core schedules by: the wall's time at the start, and from there on the time that
 * passes, asleep or awake. Whoever sets the machine's clock while core runs moves no due time, no
 * lease and no streak of failures. proto/spec/webhooks.md 10. When the machine's clock has differed
 * for ten minutes, it is believed: core's clock takes one step to it, either way, and in the same
 * moment all stored times take it too (core/store/sqlite/times.ts), so that nothing that waits
 * notices.
 */
import { uptime } from 'node:os';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';

/** In milliseconds: how often sleep is looked for; it costs the reading of a file. */
const LOOK_MS = 1_000;
/** In milliseconds: less is the coarseness of the clocks. */
const SLEPT_MIN_MS = 1_000;
/** In milliseconds: a longer jump forward makes much look old that may not be. */
const JUMP_MIN_MS = 86_400_000;
/** In milliseconds: so long a person may set the clock right before anything is thrown away. */
const HELD_MS = 86_400_000;
/** In milliseconds: less is not worth a step. */
const OFF_MIN_MS = 10_000;
/** A clock before this was never set: of a machine without a battery, before its NTP. */
export const CLOCK_MIN_MS = Date.UTC(2025, 0, 1);

export type ClockSources = {
  /** What the machine says it is; anybody may set it. */
  wall: () => number;
  /** What passes while the machine is awake. */
  awake: () => number;
  /** What passes, asleep or awake. */
  sinceBoot: () => number;
};

/** In Unix milliseconds: what is stored moves so that `from` becomes `to`. */
export type Step = { from: number; to: number };

export type SchedulerClock = {
  /** Unix milliseconds, whole. */
  now: () => number;
  /** The same without its steps, for what is kept in memory. */
  steady: () => number;
  /** Takes the step that is due; whoever asks moves what is stored before anything else is. */
  step: () => Step | undefined;
  /** What is stored was not moved: as if the step had not been taken; it is due again. */
  undo: (step: Step) => void;
  /** For a day after a jump forward by more than a day: nothing is thrown away for its age. */
  isHeld: () => boolean;
};

export const HELD = 'the clock went forward by more than a day: nothing is removed for 24 h';

/** Milliseconds since the machine was started, asleep or awake. Nobody can set it. */
export const sinceBoot = (): number => uptime() * 1_000;

const MACHINE: ClockSources = { wall: Date.now, awake: () => performance.now(), sinceBoot };

/**
 * Never before `floorMs`, the last time that was written: a machine that comes up with an old clock
 * would otherwise wait until it has caught up.
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
  /** The difference, and since when it is the same. */
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
 * Looks for steps as long as core runs. One that the store refuses for now is tried again at the
 * next look; `onFatal` when what is stored could not be moved for another reason: a start begins
 * with the times that are stored.
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
      await store.moveTimes(step); // asked at once: what is asked later has the new times
    } catch (error) {
      clock.undo(step);
      if (!isPassing(error)) throw error;
      log.warn({ err: error, stepMs }, 'core’s clock could not be set; it is tried again');
      return;
    }
    log.warn({ stepMs }, 'core’s clock and all stored times were set');
    if (stepMs > JUMP_MIN_MS) log.warn(HELD);
  }

  async function look(): Promise<void> {
    if (hasFailed) return;
    try {
      const step = clock.step();
      // a step writes, and the room that is left is for what runs
      if (step && disk.isLow) clock.undo(step);
      else if (step) await take(step);
    } catch (error) {
      hasFailed = true;
      onFatal(new Error('stored times could not be moved', { cause: error }));
    }
  }

  return periodically(settleMs / 10, look, { log, failure: 'reading the clock failed' });
}

/** The store is there, and has said no. */
function isPassing(error: unknown): boolean {
  return error instanceof Fault && error.reason !== 'OUTCOME_UNKNOWN';
}
