/**
 * Chromes for sessions, one each and used once. Spares are started ahead with a fresh profile: a
 * session then waits for no start. A dead spare is replaced; starts that fail are tried again later
 * and later. A profile is fixed when Chrome starts, so a session with one gets a Chrome of its own.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../../proto/log.ts';
import type { Chrome } from './launch.ts';
import { openSlots } from './slots.ts';

const RETRY_MIN_MS = 1_000;
const RETRY_MAX_MS = 30_000;

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
  const warm: Chrome[] = [];
  const alive = new Set<Chrome>();
  const starting = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let filling: Promise<void> | undefined;

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
  const keep = (chrome: Chrome): void => {
    warm.push(chrome);
    void chrome.exited.then(() => {
      const index = warm.indexOf(chrome);
      if (index === -1) return;
      warm.splice(index, 1);
      fill();
    });
  };
  const fillUp = async (): Promise<void> => {
    let retryMs = RETRY_MIN_MS;
    while (warm.length < spares && !closing.signal.aborted) {
      try {
        const chrome = await start({});
        if (closing.signal.aborted) return;
        keep(chrome);
        retryMs = RETRY_MIN_MS;
      } catch (error) {
        log.warn({ error: String(error), retryMs }, 'cannot start a spare Chrome');
        await delay(retryMs, undefined, { signal: closing.signal }).catch(() => undefined);
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
  };
  const fill = (): void => {
    filling ??= fillUp().finally(() => {
      filling = undefined;
      if (warm.length < spares && !closing.signal.aborted) fill();
    });
  };

  fill();
  return {
    async take(options, signal) {
      const either = AbortSignal.any([signal, closing.signal]);
      await slots.take(either);
      try {
        const spare = options.profileDir === undefined ? warm.shift() : undefined;
        if (spare !== undefined) fill();
        const chrome = spare ?? (await start(options));
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
      warm.length = 0;
      await Promise.all(starting);
      await Promise.all([...alive].map((chrome) => chrome.close()));
      await filling;
    },
  };
}
