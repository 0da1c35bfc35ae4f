/**
 * Chromes for sessions, one each and used once, at most `max` taken. Those with a fresh profile
 * come out of the stock (stock.ts). A profile is fixed when Chrome starts, so a session with one
 * gets a Chrome of its own.
 */
import type { Log } from '../../proto/log.ts';
import type { Chrome } from './launch.ts';
import { openSlots } from './slots.ts';
import { Stock } from './stock.ts';

export type TakeOptions = {
  /** A user-data directory of the caller's. */
  profileDir?: string;
};

export type ChromePool = {
  /**
   * Waits while `max` are taken. Throws when Chrome does not start, or with the signal's reason.
   */
  take(options: TakeOptions, signal: AbortSignal): Promise<Chrome>;
  /** Ends every Chrome, taken or spare; settles when all are gone. */
  close(): Promise<void>;
};

export type PoolOptions = {
  launch: (options: TakeOptions) => Promise<Chrome>;
  /** Warm Chromes kept beside those that are taken. */
  spares: number;
  /** Chromes taken at once. */
  max: number;
  log: Log;
};

export function openChromePool({ launch, spares, max, log }: PoolOptions): ChromePool {
  const slots = openSlots(max);
  const alive = new Set<Chrome>();
  const starting = new Set<Promise<unknown>>();
  const closing = new AbortController();

  const start = async (options: TakeOptions): Promise<Chrome> => {
    const started = launch(options);
    const settled = started.then(
      () => undefined,
      () => undefined,
    );
    starting.add(settled);
    try {
      const chrome = await started;
      alive.add(chrome);
      void chrome.exited.then(() => alive.delete(chrome));
      return chrome;
    } finally {
      starting.delete(settled);
    }
  };
  const stock = new Stock({ start: () => start({}), spares, log, closing: closing.signal });
  return {
    async take(options, signal) {
      const either = AbortSignal.any([signal, closing.signal]);
      await slots.take(either);
      try {
        const isFresh = options.profileDir === undefined;
        const chrome = isFresh ? await stock.next(either) : await start(options);
        if (either.aborted) {
          await chrome.close();
          throw either.reason;
        }
        void chrome.exited.then(slots.give);
        return chrome;
      } catch (error) {
        slots.give();
        throw error;
      }
    },
    async close() {
      closing.abort(new Error('the pool of Chromes is closed'));
      await Promise.all(starting);
      await Promise.all([...alive].map((chrome) => chrome.close()));
    },
  };
}
