/**
 * The filter lists behind `blockAds`: loaded on first use, in a thread of their own, and reloaded a
 * day later. They match hosts, as a DNS filter does: of an https address only the host is known
 * outside the jail, and no request of a page is intercepted.
 */
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type { IsBlocked } from './dial.ts';

/** Ours: lists expire after one to four days by their own statement. */
const KEPT_MS = 24 * 3_600_000;
/** The requesting page is unknown; most rules are for third-party requests. */
const SOME_PAGE = 'https://page.invalid/';

export type Filters = {
  /** Rejects when a list cannot be read; the next call tries again. */
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
  const pool = new Piscina<readonly string[], Uint8Array>({
    filename: fileURLToPath(new URL('./ad-filters-thread.ts', import.meta.url)),
    maxThreads: 1,
    atomics: 'disabled',
    recordTiming: false,
    execArgv: [], // modules preloaded into the runner are not for a thread
  });
  try {
    return await pool.run(lists);
  } finally {
    await pool.destroy();
  }
}

async function judgeOf(serialized: Uint8Array): Promise<IsBlocked> {
  const { FiltersEngine, Request } = await import('@ghostery/adblocker'); // 90 modules
  const engine = FiltersEngine.deserialize(serialized);
  return ({ href }) =>
    engine.match(Request.fromRawDetails({ url: href, type: 'other', sourceUrl: SOME_PAGE })).match;
}
