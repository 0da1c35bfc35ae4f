/**
 * Chromes for sessions: one for each session, used once, at most `max` taken at a time. A session
 * with default options gets a spare of its engine (spares.ts). For a session with other options,
 * such as a profile, a Chrome is started.
 */
import type { Log } from '../../proto/common/log.ts';
import { openSemaphore } from '../../proto/sharing/semaphore.ts';
import { openPages } from './cdp/pages.ts';
import type { Engine } from './find.ts';
import type { Chrome, LaunchOptions } from './launch.ts';
import { Spares, type SparesOptions } from './spares.ts';

export type TakeOptions = Pick<
  LaunchOptions,
  'profileDir' | 'extensions' | 'ignoreCertificateErrors' | 'caCertificates' | 'policies'
> & {
  /** How many times the memory of a usual browser it may use; absent: once. */
  memoryFactor?: number | undefined;
  /** Absent: the engine of the first spares. */
  engine?: Engine['kind'] | undefined;
};

export type ChromePool = {
  /** Waits while `max` are taken. Throws when Chrome does not start, or the signal's reason. */
  take(options: TakeOptions, signal: AbortSignal): Promise<Chrome>;
  /** Numbers of Chromes: taken by sessions, and running in all. */
  counts(): { taken: number; up: number };
  /** Ends the spares and keeps none: the runner drains. */
  retire(): void;
  /** Ends every Chrome, taken or spare; settles when all are gone. */
  close(): Promise<void>;
};

type Stock = Pick<SparesOptions, 'count' | 'burstMs' | 'intervalMs' | 'hasRoom'> & {
  engine: Engine['kind'];
};

type PoolOptions = {
  launch: (options: TakeOptions) => Promise<Chrome>;
  /**
   * Started Chromes kept per engine, beside the taken ones; at least one entry. The last is started
   * first.
   */
  spares: readonly Stock[];
  /** The most spares of all engines that are kept after bursts; by default none more. */
  sparesMax?: number | undefined;
  /** Chromes taken at once. */
  max: number;
  log: Log;
};

export function openChromePool(options: PoolOptions): ChromePool {
  const { launch, spares, sparesMax = 0, max, log } = options;
  const semaphore = openSemaphore({ max });
  const alive = new Set<Chrome>();
  const starting = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let taken = 0;
  const up = (): number => alive.size + starting.size;

  const start = async (wanted: TakeOptions): Promise<Chrome> => {
    closing.signal.throwIfAborted();
    const started = launch(wanted);
    starting.add(started);
    try {
      const chrome = await started;
      // nearly every session watches its pages: a spare's pages are watched before it is taken
      openPages(chrome).catch((error: unknown) => {
        if (alive.has(chrome))
          log.warn({ error: String(error) }, 'a Chrome does not list its pages and was killed');
        chrome.kill();
      });
      alive.add(chrome);
      void chrome.exited.then(() => alive.delete(chrome));
      return chrome;
    } finally {
      starting.delete(started);
    }
  };
  /** A spare beyond the usual ones has a free place, so that it takes no session's memory. */
  const hasPlace = (which: 'new' | 'up'): boolean => {
    const wanted = up() + (which === 'new' ? 1 : 0);
    return wanted <= max && wanted - taken <= sparesMax;
  };
  const opened = spares.map(({ engine, ...stock }) => {
    const own = { start: () => start({ engine }), hasPlace, log, closing: closing.signal };
    return [engine, new Spares({ ...stock, ...own })] as const;
  });
  const begin = async (): Promise<void> => {
    for (const [, stock] of opened.toReversed()) await stock.begin();
  };
  void begin();
  const sparesOf = (wanted: TakeOptions): Spares | undefined => {
    const { engine = spares[0]?.engine, ...own } = wanted;
    const isDefault = Object.values(own).every((value) => value === undefined);
    return isDefault ? opened.find(([kind]) => kind === engine)?.[1] : undefined;
  };
  return {
    async take(wanted, signal) {
      const either = AbortSignal.any([signal, closing.signal]);
      const permit = await semaphore.acquire(either);
      try {
        const chrome = await (sparesOf(wanted)?.next(either) ?? start(wanted));
        if (either.aborted) {
          await chrome.close();
          throw either.reason;
        }
        taken += 1;
        // a spare that it could not use may have its place
        if (up() > max) opened.some(([, stock]) => stock.giveUp());
        void chrome.exited.then(() => {
          taken -= 1;
          permit[Symbol.dispose]();
          for (const [, stock] of opened) stock.refill();
        });
        return chrome;
      } catch (error) {
        permit[Symbol.dispose]();
        throw error;
      }
    },
    counts: () => ({ taken, up: alive.size }),
    retire() {
      for (const [, kept] of opened) kept.retire();
    },
    async close() {
      closing.abort(new Error('the pool of Chromes is closed'));
      await Promise.allSettled(starting);
      await Promise.all([...alive].map((chrome) => chrome.close()));
    },
  };
}
