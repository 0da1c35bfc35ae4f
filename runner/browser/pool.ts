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

/** By default as many after a burst as always. */
type Stock = Pick<SparesOptions, 'count' | 'burstKeptMs' | 'room'> & {
  engine: Engine['kind'];
  most?: number | undefined;
};

type PoolOptions = {
  launch: (options: TakeOptions) => Promise<Chrome>;
  /**
   * Started Chromes kept per engine, beside the taken ones; at least one entry. The last is started
   * first.
   */
  spares: readonly Stock[];
  /** Chromes taken at once. */
  max: number;
  log: Log;
};

export function openChromePool({ launch, spares, max, log }: PoolOptions): ChromePool {
  const semaphore = openSemaphore({ max });
  const alive = new Set<Chrome>();
  const starting = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let taken = 0;

  const start = async (options: TakeOptions): Promise<Chrome> => {
    const started = launch(options);
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
  const opened = spares.map(({ engine, most = 0, ...stock }) => {
    const options = {
      ...stock,
      most,
      start: () => start({ engine }),
      log,
      closing: closing.signal,
    };
    return [engine, new Spares(options)] as const;
  });
  const begin = async (): Promise<void> => {
    for (const [, stock] of opened.toReversed()) await stock.begin();
  };
  void begin();
  const sparesOf = (options: TakeOptions): Spares | undefined => {
    const { engine = spares[0]?.engine, ...own } = options;
    const isDefault = Object.values(own).every((value) => value === undefined);
    return isDefault ? opened.find(([kind]) => kind === engine)?.[1] : undefined;
  };
  return {
    async take(options, signal) {
      const either = AbortSignal.any([signal, closing.signal]);
      const permit = await semaphore.acquire(either);
      try {
        const chrome = await (sparesOf(options)?.next(either) ?? start(options));
        if (either.aborted) {
          await chrome.close();
          throw either.reason;
        }
        taken += 1;
        void chrome.exited.then(() => {
          taken -= 1;
          permit[Symbol.dispose]();
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
