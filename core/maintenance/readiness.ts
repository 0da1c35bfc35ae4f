/**
 * The readiness of the installation, for GET /readyz. Runners report their state with each renewal
 * of their leases; a runner without a renewal for the lease's duration is absent. The state is kept
 * in memory: after a start of core each runner reports within a third of that duration.
 */
import { LRUCache } from 'lru-cache';
import type { Log } from '../../proto/common/log.ts';
import type { HealthCheck, HealthServiceService } from '../../proto/gen/tabern/v1/health.pb.ts';
import type { RunnerBrowser, RunnerFacts } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import type { Disk } from '../files/disk-space.ts';
import type { Store } from '../store/types.ts';

/** In milliseconds, of the 95th percentile: slower syncs are reported, with a warning. */
const SYNC_SLOW_MS = 200;
/** In milliseconds, as core's warning at its start. */
const CLOCK_OFF_MS = 60_000;
/** The clock may be wrong. */
const WAS_SET =
  'The clock went forward by more than a day: for 24 h nothing is removed for its age.';
/** Ours: far more runners than one core serves; runners choose their own names. */
const RUNNERS_MAX = 1_000;

export type KnownRunner = {
  runnerId: string;
  silentMs: number;
  isPresent: boolean;
  browserFailed: boolean;
  facts: RunnerFacts | undefined;
};

export type Readiness = {
  /** Records a runner's report; what it does not report is as before. */
  record(runner: Report): void;
  /** Each runner that has reported; `silentMs`: since its last report. */
  list(): KnownRunner[];
  /** Runners that reported within a lease's time, and those of them whose browser starts. */
  runners(): { present: number; able: number };
  /** The Chromes of the runners that reported within a lease's time. */
  browsers(): ReportedBrowser[];
};

/** `startedAt`: when one started last, by core's time. */
export type ReportedBrowser = Pick<RunnerBrowser, 'product' | 'buildMs' | 'spares'> & {
  startedAt: number;
};
type Report = {
  runnerId: string;
  browserFailed?: boolean | undefined;
  browser?: RunnerBrowser | undefined;
  facts?: RunnerFacts | undefined;
};
type Known = {
  at: number;
  browserFailed: boolean;
  browser: ReportedBrowser | undefined;
  facts: RunnerFacts | undefined;
};

export function openReadiness(options: { now: () => number; leaseMs: number }): Readiness {
  const { now, leaseMs } = options;
  const known = new LRUCache<string, Known>({ max: RUNNERS_MAX });
  const recent = () => [...known.values()].filter(({ at }) => now() - at <= leaseMs);
  return {
    record({ runnerId, browserFailed, browser, facts }) {
      const before = known.get(runnerId);
      const at = now();
      known.set(runnerId, {
        at,
        browserFailed: browserFailed ?? before?.browserFailed ?? false,
        browser: browser === undefined ? before?.browser : reported(browser, at),
        facts: facts ?? before?.facts,
      });
    },
    list() {
      return [...known.entries()].map(([runnerId, { at, browserFailed, facts }]) => {
        const silentMs = now() - at;
        return { runnerId, silentMs, isPresent: silentMs <= leaseMs, browserFailed, facts };
      });
    },
    runners() {
      const present = recent();
      const able = present.filter(({ browserFailed }) => !browserFailed);
      return { present: present.length, able: able.length };
    },
    browsers: () => recent().flatMap(({ browser }) => browser ?? []),
  };
}

function reported(browser: RunnerBrowser, at: number): ReportedBrowser {
  const { product, buildMs, spares, startedAgoMs } = browser;
  return { product, buildMs, spares, startedAt: at - startedAgoMs };
}

export function healthService(options: {
  store: Pick<Store, 'lastTime' | 'syncP95Ms'>;
  disk: Disk;
  readiness: Readiness;
  /** Core's time, and the machine's. */
  now: () => number;
  wall: () => number;
  isHeld: () => boolean;
  log: Log;
}): Service<typeof HealthServiceService, MachineCaller> {
  const { store, disk, readiness, now, wall, isHeld, log } = options;

  /** The fault of a database whose thread does not answer a read. */
  async function ofCore(): Promise<string> {
    try {
      await store.lastTime();
      return '';
    } catch (error) {
      log.error({ err: error }, 'the database does not answer');
      return 'The database does not answer.';
    }
  }

  /** The warning of a slow disk: every acknowledged write waits for it. */
  function slowness(): string {
    const ms = store.syncP95Ms() ?? 0;
    if (ms < SYNC_SLOW_MS) return '';
    return `Writes wait ${Math.round(ms)} ms for the disk (95th percentile).`;
  }

  function offset(): string {
    const seconds = Math.round((now() - wall()) / 1_000);
    if (Math.abs(seconds) * 1_000 <= CLOCK_OFF_MS) return isHeld() ? WAS_SET : '';
    const way = seconds > 0 ? 'ahead of' : 'behind';
    return `Core’s time is ${Math.abs(seconds)} s ${way} the machine’s.`;
  }

  return {
    async checkHealth() {
      const { present, able } = readiness.runners();
      const lost = 'No browser starts: see the runner’s log.';
      const checks: HealthCheck[] = [
        { name: 'core', fault: await ofCore(), warning: '' },
        { name: 'disk', fault: disk.isLow ? 'The disk is almost full.' : '', warning: slowness() },
        { name: 'clock', fault: '', warning: offset() },
        { name: 'runner', fault: present > 0 ? '' : 'No runner is registered.', warning: '' },
        { name: 'browser', fault: present > 0 && able === 0 ? lost : '', warning: '' },
      ];
      return { checks };
    },
  };
}
