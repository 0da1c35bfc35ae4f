/**
 * Chromes for sessions, one each and used once, at most `max` taken. A Chrome with default options
 * is a spare of its engine (spares.ts). A Chrome with options of its own, such as a profile, is
 * started for its session.
 */
import type { Log } from '../../proto/common/log.ts';
import { openSemaphore } from '../../proto/sharing/semaphore.ts';
import { openPages } from './cdp/pages.ts';
import type { LoadedExtension } from './extension.ts';
import type { Engine } from './find.ts';
import type { Chrome } from './launch.ts';
import { Spares } from './spares.ts';

export type TakeOptions = {
  /** Absent: the engine of the first spares. */
  engine?: Engine['kind'];
  /** A user-data directory of the caller's. */
  profileDir?: string;
  /** For full Chromium. */
  extension?: LoadedExtension;
  /** Any certificate will do. */
  ignoreCertificateErrors?: boolean;
};

export type ChromePool = {
  /**
   * Waits while `max` are taken. Throws when Chrome does not start, or with the signal's reason.
   */
  take(options: TakeOptions, signal: AbortSignal): Promise<Chrome>;
  /** How many are taken, and how many are running in all. */
  counts(): { taken: number; up: number };
  /** Ends every Chrome, taken or spare; settles when all are gone. */
  close(): Promise<void>;
};

export type PoolOptions = {
  launch: (options: TakeOptions) => Promise<Chrome>;
  /** Started Chromes kept per engine, beside the taken ones; at least one entry. */
  spares: readonly { engine: Engine['kind']; count: number }[];
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
    const settled = started.then(
      () => undefined,
      () => undefined,
    );
    starting.add(settled);
    try {
      const chrome = await started;
      // nearly every session watches its pages: one that takes a spare finds them watched
      openPages(chrome).catch((error: unknown) => {
        if (alive.has(chrome)) log.warn({ error: String(error) }, 'a Chrome is unfit: killed');
        chrome.kill();
      });
      alive.add(chrome);
      void chrome.exited.then(() => alive.delete(chrome));
      return chrome;
    } finally {
      starting.delete(settled);
    }
  };
  const opened = spares.map(({ engine, count }) => {
    const options = { start: () => start({ engine }), count, log, closing: closing.signal };
    return [engine, new Spares(options)] as const;
  });
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
    async close() {
      closing.abort(new Error('the pool of Chromes is closed'));
      await Promise.all(starting);
      await Promise.all([...alive].map((chrome) => chrome.close()));
    },
  };
}
