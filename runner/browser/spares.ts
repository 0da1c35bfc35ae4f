/**
 * Spare Chromes with fresh profiles, and the sessions that wait for one. A session takes a spare,
 * or waits for a start: the next Chrome that is ready is given to the session that has waited
 * longest. A dead spare is replaced. A failed start rejects a waiting session only if no other
 * start is in progress for it. After a failure, spares are not refilled for a pause, which doubles
 * with each failure.
 *
 * The stock follows bursts: each session that found no spare adds one to it, up to a limit, until
 * no session has needed it for a while.
 */
import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import { cpuRoom } from '../common/cpu-room.ts';
import type { Chrome } from './launch.ts';

/**
 * Ours: a start uses a core for about this time, and the session that has just begun needs that
 * core more. With this delay a trivial invocation every 400 ms takes 125 instead of 312 ms (p95,
 * two busy cores).
 */
const REFILL_AFTER_MS = 150;
/** Ours: more spares than these start one at a time, while the processors have room. */
const USUAL_MAX = 2;
/** Ours: how long the spares of a burst are kept after the last session that needed them. */
const BURST_KEPT_MS = 300_000;
/** Between a failed start and the next refill. */
const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

export type SparesOptions = {
  start(): Promise<Chrome>;
  /** Number of spares that are always kept. */
  count: number;
  /** The most that are kept after bursts; less than `count`: no more than `count`. */
  most: number;
  /** By default BURST_KEPT_MS. */
  burstKeptMs?: number | undefined;
  /** Waits before one of more than USUAL_MAX spares is started. By default cpuRoom. */
  room?: ((signal: AbortSignal) => Promise<void>) | undefined;
  log: Log;
  /** Aborts when no more Chromes may be started. */
  closing: AbortSignal;
};

export class Spares {
  readonly #options: SparesOptions;
  readonly #warm: Chrome[] = [];
  readonly #waiting: PromiseWithResolvers<Chrome>[] = [];
  #starting = 0;
  #pauseMs = PAUSE_MIN_MS;
  #isPaused = false;
  /** Spares to keep now. */
  #target: number;
  #hasBegun = false;
  #isRetired = false;
  #isGrowing = false;
  /** Pending while the stock is larger than `count`. */
  #burst: NodeJS.Timeout | undefined;

  constructor(options: SparesOptions) {
    this.#options = options;
    this.#target = options.count;
  }

  /** Starts the first spare, then the others. Settles when the first has started or failed. */
  async begin(): Promise<void> {
    if (this.#target > 0) await this.#startOne();
    this.#hasBegun = true;
    this.#fill();
  }

  /** The next Chrome. Rejects with the signal's reason, or with the error of its start. */
  async next(signal: AbortSignal): Promise<Chrome> {
    const spare = this.#warm.shift();
    const waiter = Promise.withResolvers<Chrome>();
    this.#follow(spare === undefined);
    if (spare) {
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

  /** Ends the spares and keeps none; a later session waits for the start of its own. */
  retire(): void {
    this.#isRetired = true;
    this.#keepOnly(0);
  }

  /** Adds to the stock when a session found none; notes when it needed more than `count`. */
  #follow(isMissed: boolean): void {
    const { count, most, burstKeptMs = BURST_KEPT_MS } = this.#options;
    if (this.#isRetired || count === 0 || most <= count) return;
    if (isMissed) this.#target = Math.min(this.#target + 1, most);
    const isNeeded = isMissed || this.#target - this.#warm.length > count;
    if (!isNeeded) return;
    clearTimeout(this.#burst);
    this.#burst = setTimeout(() => this.#keepOnly(count), burstKeptMs).unref();
  }

  #keepOnly(count: number): void {
    clearTimeout(this.#burst);
    this.#target = count;
    for (const spare of this.#warm.splice(count)) void spare.close();
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
    return this.#hasBegun && !this.#isRetired && !this.#isPaused && !this.#options.closing.aborted;
  }

  /** Starts the other spares, one after the other. */
  async #grow(): Promise<void> {
    const { closing, room = cpuRoom } = this.#options;
    const isWanted = (): boolean =>
      this.#mayStart() && this.#warm.length + this.#starting < this.#target;
    this.#isGrowing = true;
    while (isWanted()) {
      await room(closing);
      if (isWanted() && this.#waiting.length === 0) await this.#startOne();
    }
    this.#isGrowing = false;
  }

  async #startOne(): Promise<void> {
    this.#starting += 1;
    try {
      const chrome = await this.#options.start();
      this.#starting -= 1;
      this.#pauseMs = PAUSE_MIN_MS;
      if (!this.#options.closing.aborted) this.#offer(chrome);
    } catch (error) {
      this.#starting -= 1;
      this.#fail(error);
    }
    this.#fill();
  }

  #offer(chrome: Chrome): void {
    const waiter = this.#waiting.shift();
    if (waiter) waiter.resolve(chrome);
    else if (this.#warm.length < this.#target) this.#keep(chrome);
    else void chrome.close(); // no session waits for it any more
  }

  #keep(chrome: Chrome): void {
    this.#warm.push(chrome);
    // not `exited`, which settles when its directory is removed: a dead Chrome could be taken
    void chrome.pipe.closed.then(() => {
      const index = this.#warm.indexOf(chrome);
      if (index >= 0) this.#warm.splice(index, 1);
      this.#fill();
    });
  }

  #fail(error: unknown): void {
    const { closing, log } = this.#options;
    if (this.#waiting.length > this.#starting) this.#waiting.shift()?.reject(error);
    else log.warn({ error: String(error) }, 'cannot start a spare Chrome');
    if (this.#isPaused) return;
    this.#isPaused = true;
    void pause(this.#pauseMs, closing).then(() => {
      this.#isPaused = false;
      this.#fill(); // starts none when closing
    });
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
  }
}
