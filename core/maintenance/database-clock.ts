/**
 * Core's clock when several cores share a database: that of its server, so that all cores agree
 * within a round trip. Between measurements it is the elapsed time of this machine, so a change of
 * this machine's clock changes nothing.
 *
 * Small differences are followed at once, without a step back. When the server's clock is set, each
 * core takes the step; stored times are not moved, because other cores write meanwhile: what is due
 * comes earlier or later by the step. The leader takes a step last, and gives every lease a full
 * term before it: no work is lost because cores disagreed.
 */
import type { Log } from '../../proto/common/log.ts';
import type { Pause } from '../../proto/common/pause.ts';
import { periodically } from '../common/periodically.ts';
import type { Store } from '../store/types.ts';
import { HELD, type SchedulerClock, schedulerClock } from './clock.ts';

/** In milliseconds between measurements. */
const PERIOD_MS = 10_000;
/** In milliseconds: a larger difference is a step. */
const STEP_MIN_MS = 5_000;
/** In milliseconds: with NTP, clocks differ by a fraction of a second. Ours. */
export const SERVER_OFF_MS = 5_000;
/** Measurements that show the step before it is taken. */
const SEEN_MIN = 2;
const SEEN_BY_LEADER_MIN = 6;
/** In milliseconds, as core/maintenance/clock.ts. */
const JUMP_MIN_MS = 86_400_000;
const HELD_MS = 86_400_000;

type Options = {
  store: Pick<Store, 'serverTime' | 'lastTime' | 'recoverWork' | 'isLeader'>;
  log: Log;
  leaseMs: number;
  /** For tests. */
  pause?: Pause;
  steady?: () => number;
  /** This machine's clock. */
  wall?: () => number;
};

export type DatabaseClock = Pick<SchedulerClock, 'now' | 'steady' | 'isHeld'> &
  AsyncDisposable & {
    /** In milliseconds: how far this machine's clock is ahead of the server's. */
    machineOffMs(): number;
  };

/** Throws when the first measurement fails. */
export async function followDatabase(options: Options): Promise<DatabaseClock> {
  const { store, log, leaseMs, pause, wall = Date.now } = options;
  const { steady = schedulerClock(0, Number.POSITIVE_INFINITY).steady } = options;
  let offMs = await measured(undefined);
  let latest = 0;
  let seen = 0;
  let heldUntil = 0;
  let isOff = false;
  compare();
  const written = await store.lastTime();
  if (written > 0) hold(now() - written);

  function now(): number {
    latest = Math.max(latest, Math.floor(steady() + offMs));
    return latest;
  }

  /**
   * How far the server's clock is ahead. Its answer was written between the call and now, which may
   * be seconds on a busy database: what is known stays, if it is within that time.
   */
  async function measured(known: number | undefined): Promise<number> {
    const sentAt = steady();
    const time = await store.serverTime();
    if (time === undefined) throw new Error('the store has no server');
    const [least, most] = [time - steady(), time - sentAt];
    return known === undefined ? (least + most) / 2 : Math.min(Math.max(known, least), most);
  }

  function hold(stepMs: number): void {
    if (stepMs <= JUMP_MIN_MS) return;
    heldUntil = steady() + HELD_MS;
    log.warn({ stepMs }, HELD);
  }

  function machineOffMs(): number {
    return Math.round(wall() - (steady() + offMs));
  }

  /** Logs that this machine's clock differs, once, and its end. */
  function compare(): void {
    const aheadMs = machineOffMs();
    if (isOff === Math.abs(aheadMs) > SERVER_OFF_MS) return;
    isOff = !isOff;
    if (isOff) log.warn({ aheadMs }, "this machine's clock is not the database's: set both by NTP");
    else log.info({ aheadMs }, "this machine's clock is the database's again");
  }

  async function look(): Promise<void> {
    await follow(await measured(offMs));
    compare();
  }

  async function follow(nextMs: number): Promise<void> {
    const stepMs = Math.round(nextMs - offMs);
    if (Math.abs(stepMs) < STEP_MIN_MS) {
      seen = 0;
      offMs = nextMs;
      return;
    }
    seen += 1;
    const isLeader = store.isLeader();
    if (seen < (isLeader ? SEEN_BY_LEADER_MIN : SEEN_MIN)) return;
    if (isLeader) await store.recoverWork({ at: Math.floor(steady() + nextMs), leaseMs });
    log.warn({ stepMs }, 'the clock of the database was set: core follows it');
    offMs = nextMs;
    latest = 0;
    seen = 0;
    hold(stepMs);
  }

  const looking = periodically(PERIOD_MS, look, {
    log,
    failure: 'reading the clock of the database failed',
    pause,
  });
  return {
    now,
    steady,
    isHeld: () => steady() < heldUntil,
    machineOffMs,
    [Symbol.asyncDispose]: () => looking[Symbol.asyncDispose](),
  };
}
