/**
 * Spare Chromes with fresh profiles, and the sessions that wait for one. A session takes a spare,
 * or waits for a start: the next Chrome that is ready is given to the session that has waited
 * longest. A failed start rejects a waiting session only if it began after the session, and if no
 * other start is in progress for it. After a failure, or the death of a spare, spares are not
 * refilled for a pause, which doubles each time until a session has a Chrome.
 *
 * The stock follows bursts. A session that found no spare makes it as large as the number of
 * sessions that began within some seconds. It stays so until no burst of that size has come for
 * some minutes.
 */
import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import { hasCpuRoom } from '../common/cpu-room.ts';
import type { Chrome } from './launch.ts';

/**
 * Ours: a start uses a core for about this time, and the session that has just begun needs that
 * core more. With this delay a trivial invocation every 400 ms takes 125 instead of 312 ms (p95,
 * two busy cores).
 */
const REFILL_AFTER_MS = 150;
/** Ours: more spares than these start one at a time. */
const USUAL_MAX = 2;
/** Ours: sessions that begin within this time are one burst. */
const BURST_MS = 10_000;
/** Ours: the stock of a burst is kept for one to two of these intervals. */
const INTERVAL_MS = 150_000;
/** Between a failed start, or the death of a spare, and the next refill. */
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

export type SparesOptions = {
  start(): Promise<Chrome>;
  /** Number of spares that are always kept. 0: none is ever kept. */
  count: number;
  /** Whether one more than `count` may be started now, or be kept that is up. */
  hasPlace(which: 'new' | 'up'): boolean;
  /** By default BURST_MS. */
  burstMs?: number | undefined;
  /** By default INTERVAL_MS. */
  intervalMs?: number | undefined;
  /** Takes a look before one of more than `count` spares is started. By default hasCpuRoom. */
  hasRoom?: ((signal: AbortSignal) => Promise<boolean>) | undefined;
  log: Log;
  /** Aborts when no more Chromes may be started. */
  closing: AbortSignal;
};

/** `began`: the number of starts that had begun before it. */
type Waiter = PromiseWithResolvers<Chrome> & { began: number };

export class Spares {
  readonly #options: SparesOptions;
  readonly #warm: Chrome[] = [];
  readonly #waiting: Waiter[] = [];
  readonly #retired = new AbortController();
  /** Aborts when no Chrome may be started for which no session waits. */
  readonly #ending: AbortSignal;
  #starting = 0;
  /** Number of starts until now. */
  #starts = 0;
  #pauseMs = PAUSE_MIN_MS;
  #isPaused = false;
  #hasBegun = false;
  #isGrowing = false;
  /** Spares to keep now. */
  #target: number;
  /** When the sessions of the last burst began. */
  #begun: number[] = [];
  /** The largest burst of this interval. */
  #largest = 0;
  /** Pending while the stock is larger than `count`. */
  #interval: NodeJS.Timeout | undefined;

  constructor(options: SparesOptions) {
    this.#options = options;
    this.#target = options.count;
    this.#ending = AbortSignal.any([options.closing, this.#retired.signal]);
  }

  /** Starts the first spare, then the others. Settles when the first has started or failed. */
  async begin(): Promise<void> {
    if (this.#target > 0 && !this.#ending.aborted) await this.#startOne();
    this.#hasBegun = true;
    this.#fill();
  }

  /** The next Chrome. Rejects with the signal's reason, or with the error of its start. */
  async next(signal: AbortSignal): Promise<Chrome> {
    signal.throwIfAborted();
    const spare = this.#warm.shift();
    const waiter = { ...Promise.withResolvers<Chrome>(), began: this.#starts };
    if (spare) {
      this.#count();
      waiter.resolve(spare);
      setTimeout(() => this.#fill(), REFILL_AFTER_MS).unref();
    } else {
      this.#waiting.push(waiter);
      this.#fill();
    }
    const abort = (): void => {
      const index = this.#waiting.indexOf(waiter);
      if (index >= 0) this.#waiting.splice(index, 1);
      waiter.reject(signal.reason); // no effect when a Chrome was given
    };
    signal.addEventListener('abort', abort, { once: true });
    return await waiter.promise.finally(() => signal.removeEventListener('abort', abort));
  }

  /** Fills the stock, when there may be more than before. */
  refill(): void {
    if (this.#target > this.#options.count) this.#fill();
  }

  /** Ends a spare of a burst, whose place a session has taken. Returns whether there was one. */
  giveUp(): boolean {
    if (this.#warm.length <= this.#options.count) return false;
    this.#shrink();
    void this.#warm.pop()?.close();
    return true;
  }

  /** Ends the spares and keeps none; a later session waits for the start of its own. */
  retire(): void {
    this.#retired.abort();
    clearTimeout(this.#interval);
    this.#target = 0;
    for (const spare of this.#warm.splice(0)) void spare.close();
  }

  /** Counts a session that has its Chrome. Returns the size of its burst. */
  #count(): number {
    const { burstMs = BURST_MS } = this.#options;
    const now = performance.now();
    this.#begun = [...this.#begun.filter((at) => now - at < burstMs), now];
    this.#largest = Math.max(this.#largest, this.#begun.length);
    this.#pauseMs = PAUSE_MIN_MS;
    return this.#begun.length;
  }

  /** After a session that found no spare. */
  #enlarge(burst: number): void {
    const { count } = this.#options;
    if (count === 0 || this.#ending.aborted) return;
    this.#target = Math.max(this.#target, burst);
    if (this.#target > count) this.#interval ??= this.#nextInterval();
  }

  #shrink(): void {
    this.#target = Math.max(this.#options.count, this.#target - 1);
  }

  #nextInterval(): NodeJS.Timeout {
    const { count, intervalMs = INTERVAL_MS } = this.#options;
    const end = async (): Promise<void> => {
      this.#target = Math.min(this.#target, Math.max(count, this.#largest));
      this.#largest = 0;
      this.#interval = this.#target > count ? this.#nextInterval() : undefined;
      // one after the other: the end of one takes a part of a core
      for (const spare of this.#warm.splice(this.#target)) await spare.close();
    };
    return setTimeout(end, intervalMs).unref();
  }

  #fill(): void {
    const { closing, count } = this.#options;
    const missing = this.#mayStart() ? Math.min(count, USUAL_MAX) - this.#warm.length : 0;
    const wanted = this.#waiting.length + Math.max(0, missing);
    while (!closing.aborted && this.#starting < wanted) void this.#startOne();
    if (!this.#isGrowing) void this.#grow();
  }

  /** Whether a Chrome may be started for which no session waits. */
  #mayStart(): boolean {
    return this.#hasBegun && !this.#isPaused && !this.#ending.aborted;
  }

  /** Starts the other spares, one after the other. */
  async #grow(): Promise<void> {
    const { count, hasPlace, hasRoom = hasCpuRoom } = this.#options;
    const up = (): number => this.#warm.length + this.#starting;
    const isMissing = (): boolean =>
      this.#mayStart() &&
      this.#waiting.length === 0 && // the start for a session fills the stock afterwards
      up() < this.#target &&
      (up() < count || hasPlace('new'));
    this.#isGrowing = true;
    while (isMissing()) {
      // what is missing may have changed during the look
      if (up() >= count && !(await hasRoom(this.#ending))) continue;
      if (isMissing()) await this.#startOne();
    }
    this.#isGrowing = false;
  }

  async #startOne(): Promise<void> {
    this.#starting += 1;
    this.#starts += 1;
    const number = this.#starts;
    try {
      const chrome = await this.#options.start();
      this.#starting -= 1;
      if (!this.#options.closing.aborted) this.#offer(chrome);
    } catch (error) {
      this.#starting -= 1;
      this.#fail(error, number);
    }
    this.#fill();
  }

  #offer(chrome: Chrome): void {
    const waiter = this.#waiting.shift();
    if (waiter) {
      waiter.resolve(chrome);
      this.#enlarge(this.#count());
    } else if (this.#mayKeep()) this.#keep(chrome);
    else void chrome.close(); // no session waits for it any more
  }

  #mayKeep(): boolean {
    const { count, hasPlace } = this.#options;
    const kept = this.#warm.length;
    return kept < this.#target && (kept < count || hasPlace('up'));
  }

  #keep(chrome: Chrome): void {
    this.#warm.push(chrome);
    // not `exited`, which settles when its directory is removed: a dead Chrome could be taken
    void chrome.pipe.closed.then(() => {
      const index = this.#warm.indexOf(chrome);
      if (index < 0) return;
      this.#warm.splice(index, 1);
      // it may have died for want of memory, and the next one may die as well
      this.#shrink();
      this.#rest();
    });
  }

  /** `number`: of the start. One before the session may have failed for a reason of that time. */
  #fail(error: unknown, number: number): void {
    const { log } = this.#options;
    const [first] = this.#waiting;
    const isItsOwn = first !== undefined && number > first.began;
    if (isItsOwn && this.#waiting.length > this.#starting) this.#waiting.shift()?.reject(error);
    else log.warn({ error: String(error) }, 'cannot start a spare Chrome');
    this.#rest();
  }

  /** Refills nothing for a while. */
  #rest(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    void pause(this.#pauseMs, this.#options.closing).then(() => {
      this.#isPaused = false;
      this.#fill(); // starts none when closing
    });
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
  }
}
