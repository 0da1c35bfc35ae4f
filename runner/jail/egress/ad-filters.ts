/**
 * The filter lists behind `blockAds`: read once, on first use, in a thread of their own, and again
 * a day later. They judge hosts, as a DNS filter does: of an https address only its host is known
 * where it leaves the jail, and no request of a page is ever intercepted.
 */
import { Worker } from 'node:worker_threads';
import { FiltersEngine, Request } from '@ghostery/adblocker';
import type { IsBlocked } from './dial.ts';

/** Ours: lists say themselves that they expire in one to four days. */
const KEPT_MS = 24 * 3_600_000;
/** The page that asks is not known; most rules are for what others' pages load. */
const SOME_PAGE = 'https://page.invalid/';

export type Filters = {
  /** Rejects when a list cannot be read; the next caller tries again. */
  load(): Promise<IsBlocked>;
};

/** `lists`: paths and http(s) addresses. */
export function openFilters(options: {
  lists: readonly string[];
  /** Monotonic, in milliseconds. */
  now?: () => number;
}): Filters {
  const { lists, now = () => performance.now() } = options;
  let loaded: { at: number; rules: Promise<IsBlocked> } | undefined;
  return {
    load() {
      if (loaded === undefined || now() - loaded.at > KEPT_MS) {
        const rules = parsed(lists).then(judgeOf);
        const mine = { at: now(), rules };
        loaded = mine;
        rules.catch(() => {
          if (loaded === mine) loaded = undefined;
        });
      }
      return loaded.rules;
    },
  };
}

async function parsed(lists: readonly string[]): Promise<Uint8Array> {
  const thread = new Worker(new URL('./ad-filters-thread.ts', import.meta.url), {
    workerData: lists,
    execArgv: [], // what was preloaded into the runner is not for a thread
  });
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  thread.once('message', resolve).once('error', reject);
  thread.once('exit', () => reject(new Error('the thread for filter lists ended')));
  try {
    return await promise;
  } finally {
    await thread.terminate();
  }
}

function judgeOf(serialized: Uint8Array): IsBlocked {
  const engine = FiltersEngine.deserialize(serialized);
  return ({ href }) =>
    engine.match(Request.fromRawDetails({ url: href, type: 'other', sourceUrl: SOME_PAGE })).match;
}
