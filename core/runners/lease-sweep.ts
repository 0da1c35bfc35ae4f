/**
 * The sweep: ends work whose lease, time or patience is over, every `sweepMs`, for as long as core
 * runs. A core that stood still (stopped, swapped out, its machine asleep) has heard no renewal: as
 * after a start, every lease gets its time anew then.
 */
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import { sinceBoot } from '../maintenance/clock.ts';
import type { Store } from '../store/types.ts';

/** Pieces in one operation: others commit in between. */
const BATCH = 100;

export type Sweeper = AsyncDisposable;

export function startSweep(options: {
  store: Pick<Store, 'sweepWork' | 'recoverWork'>;
  log: Log;
  now: () => number;
  leaseMs: number;
  sweepMs: number;
  /** By which it sees that it stood still: no clock that can be set, and one that counts sleep. */
  clock?: () => number;
}): Sweeper {
  const { store, log, now, leaseMs, sweepMs, clock = sinceBoot } = options;
  let sweptAt = clock();

  async function sweepBatch(): Promise<number> {
    const stoodMs = clock() - sweptAt - sweepMs;
    sweptAt += stoodMs + sweepMs;
    if (stoodMs > leaseMs / 2) {
      log.warn({ stoodMs }, 'core stood still: leases get their time anew');
      await store.recoverWork({ at: now(), leaseMs });
    }
    const ended = await store.sweepWork({ at: now(), max: BATCH });
    if (ended > 0) log.warn({ ended }, 'work was lost or out of time');
    return ended;
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await sweepBatch()) === BATCH);
  }

  return periodically(sweepMs, sweep, { log, failure: 'sweep failed', firstMs: 0 });
}
