/**
 * Says every 30 s that core runs, so that our own downtime is not held against an endpoint that was
 * failing when we went down: five days of failure are five days in which we tried.
 * proto/spec/webhooks.md 7.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../proto/common/log.ts';
import type { Store } from '../store/types.ts';

const PERIOD_MS = 30_000;
/** A shorter absence is a restart. Source: proto/spec/webhooks.md 7. */
const GAP_MIN_MS = 10 * 60_000;

type Options = { store: Pick<Store, 'beat'>; log: Log; now: () => number; periodMs?: number };

/** Beats now and on. A beat that fails is logged: the next one makes up for it. */
export async function startHeartbeat(options: Options): Promise<AsyncDisposable> {
  const { store, log, now, periodMs = PERIOD_MS } = options;
  const closing = new AbortController();
  const { signal } = closing;

  async function beat(): Promise<void> {
    const { gapMs } = await store.beat({ at: now(), gapMinMs: GAP_MIN_MS });
    if (gapMs > 0) log.info({ gapMs }, 'core was down; failing webhooks are not charged for it');
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await sleep(periodMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
      await beat().catch((error: unknown) => log.error({ err: error }, 'no heartbeat'));
    }
  }

  await beat();
  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      closing.abort();
      await running;
    },
  };
}
