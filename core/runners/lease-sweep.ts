/**
 * The lease sweep: every `sweepMs` it ends work whose lease, timeout or time in the queue has
 * expired. A core that was suspended (stopped, swapped out, its machine asleep) has received no
 * renewals: as after a start of core, every lease then gets a full term.
 */
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import { sinceBoot } from '../maintenance/clock.ts';
import type { Store } from '../store/types.ts';

/** Rows per operation: other operations commit in between. */
const BATCH = 100;

export function startSweep(options: {
  store: Pick<Store, 'sweepWork' | 'recoverWork'>;
  log: Log;
  now: () => number;
  leaseMs: number;
  sweepMs: number;
  /** Clock for the detection of a suspension: monotonic, and it counts sleep. */
  clock?: () => number;
}): AsyncDisposable {
  const { store, log, now, leaseMs, sweepMs, clock = sinceBoot } = options;
  let sweptAt = clock();

  async function sweepBatch(): Promise<number> {
    const stoodMs = clock() - sweptAt - sweepMs;
    sweptAt += stoodMs + sweepMs;
    if (stoodMs > leaseMs / 2) {
      log.warn({ stoodMs }, 'core was suspended: all leases get a full term');
      await store.recoverWork({ at: now(), leaseMs });
    }
    const ended = await store.sweepWork({ at: now(), max: BATCH });
    if (ended > 0) log.warn({ ended }, 'ended work whose lease or time was over');
    return ended;
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && (await sweepBatch()) === BATCH);
  }

  return periodically(sweepMs, sweep, { log, failure: 'sweep failed', firstMs: 0 });
}
