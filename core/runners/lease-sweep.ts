/**
 * The lease sweep: every `sweepMs` it ends work whose timeout or time in the queue has expired, or
 * whose runner has not reported for `lostMs`. Work that has not begun waits again after `leaseMs`.
 * While nothing swept for a time (core was suspended, its database was away, another core
 * swept until it ended), renewals may be missing: as after a start of core, every lease then gets a
 * full term. Of several cores, one sweeps.
 */
import type { Log } from '../../proto/common/log.ts';
import { periodically } from '../common/periodically.ts';
import { sinceBoot } from '../maintenance/clock.ts';
import { logEnds } from '../sessions/ended-sessions.ts';
import type { Store } from '../store/types.ts';

/** Rows per operation: other operations commit in between. */
const BATCH = 100;

export function startSweep(options: {
  store: Pick<Store, 'sweepWork' | 'recoverWork' | 'isLeader'>;
  log: Log;
  now: () => number;
  leaseMs: number;
  lostMs: number;
  sweepMs: number;
  /** Clock for the detection of a suspension: monotonic, and it counts sleep. */
  clock?: () => number;
}): AsyncDisposable {
  const { store, log, now, leaseMs, sweepMs, clock = sinceBoot } = options;
  const lostAfterMs = Math.max(0, options.lostMs - leaseMs);
  let sweptAt = clock();

  async function sweepBatch(): Promise<number> {
    const at = clock();
    const stoodMs = at - sweptAt - sweepMs;
    if (stoodMs > leaseMs / 2) {
      log.warn({ stoodMs }, 'nothing swept for a time: all leases get a full term');
      await store.recoverWork({ at: now(), leaseMs });
    }
    const ended = await store.sweepWork({ at: now(), lostAfterMs, max: BATCH });
    sweptAt = at;
    logEnds(log, ended);
    if (ended.length > 0) {
      log.warn({ ended: ended.length }, 'ended work whose lease or time was over');
    }
    return ended.length;
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && store.isLeader() && (await sweepBatch()) === BATCH);
  }

  return periodically(sweepMs, sweep, { log, failure: 'sweep failed', firstMs: 0 });
}
