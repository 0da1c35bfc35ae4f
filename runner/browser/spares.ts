/**
 * Spare Chromes with fresh profiles, and the sessions that wait for one. A session takes a spare,
 * or waits for a start: the next Chrome that is ready is given to the session that has waited
 * longest. A dead spare is replaced. A failed start is reported to a session only if no other start
 * is in progress for it; then spares are not refilled for a while, longer after each failure.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import type { Chrome } from './launch.ts';

/**
 * Ours: a start takes a core for so long, which the session that has just begun needs more. With it
 * a trivial invocation every 400 ms takes 125 instead of 312 ms (p95, two busy cores).
 */
const REFILL_AFTER_MS = 150;
const REST_MIN_MS = 1_000;
const REST_MAX_MS = 30_000;

export type SparesOptions = {
  start(): Promise<Chrome>;
  /** How many spares are kept. */
  count: number;
  log: Log;
  /** Aborts when no more Chromes are started. */
  closing: AbortSignal;
};

export class Spares {
  readonly #options: SparesOptions;
  readonly #warm: Chrome[] = [];
  readonly #takers: PromiseWithResolvers<Chrome>[] = [];
  #underWay = 0;
  #restMs = REST_MIN_MS;
  #isResting = false;

  constructor(options: SparesOptions) {
    this.#options = options;
    this.#fill();
  }

  /** The next Chrome. Rejects with the signal's reason, or with the error of its start. */
  async next(signal: AbortSignal): Promise<Chrome> {
    const spare = this.#warm.shift();
    const taker = Promise.withResolvers<Chrome>();
    if (spare) {
      taker.resolve(spare);
      setTimeout(() => this.#fill(), REFILL_AFTER_MS).unref();
    } else {
      this.#takers.push(taker);
      this.#fill();
    }
    const abort = (): void => {
      const index = this.#takers.indexOf(taker);
      if (index >= 0) this.#takers.splice(index, 1);
      taker.reject(signal.reason); // changes nothing when it has one
    };
    signal.addEventListener('abort', abort, { once: true });
    return await taker.promise.finally(() => signal.removeEventListener('abort', abort));
  }

  #fill(): void {
    const { closing, count: spares } = this.#options;
    const missing = this.#isResting ? 0 : spares - this.#warm.length;
    const wanted = this.#takers.length + Math.max(0, missing);
    while (!closing.aborted && this.#underWay < wanted) void this.#startOne();
  }

  async #startOne(): Promise<void> {
    this.#underWay += 1;
    try {
      const chrome = await this.#options.start();
      this.#underWay -= 1;
      this.#restMs = REST_MIN_MS;
      if (!this.#options.closing.aborted) this.#offer(chrome);
    } catch (error) {
      this.#underWay -= 1;
      this.#fail(error);
    }
    this.#fill();
  }

  #offer(chrome: Chrome): void {
    const taker = this.#takers.shift();
    if (taker) taker.resolve(chrome);
    else if (this.#warm.length < this.#options.count) this.#keep(chrome);
    else void chrome.close(); // its session has given up
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
    if (this.#takers.length > this.#underWay) this.#takers.shift()?.reject(error);
    else log.warn({ error: String(error) }, 'cannot start a spare Chrome');
    if (this.#isResting) return;
    this.#isResting = true;
    const over = (): void => {
      this.#isResting = false;
      this.#fill();
    };
    delay(this.#restMs, undefined, { signal: closing }).then(over, () => {}); // closed: no more
    this.#restMs = Math.min(this.#restMs * 2, REST_MAX_MS);
  }
}
