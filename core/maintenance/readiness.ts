/**
 * The readiness of the installation, for GET /readyz. Runners report their state with each renewal
 * of their leases; a runner without a renewal for the lease's duration is absent. The state is kept
 * in memory: after a start of core each runner reports within a third of that duration. Of several
 * cores, the one that receives a report sends it to the others.
 */
import { isDeepStrictEqual } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { Log } from '../../proto/common/log.ts';
import { pause } from '../../proto/common/pause.ts';
import type { HealthCheck, HealthServiceService } from '../../proto/gen/tabern/v1/health.pb.ts';
import type { RunnerBrowser, RunnerFacts } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import type { Disk } from '../files/disk-space.ts';
import type { BucketHealth } from '../files/s3/health.ts';
import type { Store } from '../store/types.ts';
import { SERVER_OFF_MS } from './database-clock.ts';

/** In milliseconds, of the 95th percentile: slower syncs are reported, with a warning. */
const SYNC_SLOW_MS = 200;
/** In milliseconds, as core's warning at its start. */
const CLOCK_OFF_MS = 60_000;
/** Time of the database for one read: callers wait 2 s for all checks. Ours. */
const READ_MS = 1_500;
/** In milliseconds: after it was lost, core connects again each second. Ours. */
const LINE_LOST_MS = 10_000;
/** In milliseconds, as the gateway's. */
const KEPT_MS = 1_000;
/** Components of core itself: others are those of runners. */
const OWN: ReadonlySet<string> = new Set(['core', 'disk', 'bucket', 'clock']);
/** The clock may be wrong. */
const WAS_SET =
  'The clock went forward by more than a day: for 24 h nothing is removed for its age.';
/** As of a connection that timed out. */
const LATE = { code: 'ETIMEDOUT' };
/** Ours: far more runners than one core serves; runners choose their own names. */
const RUNNERS_MAX = 1_000;
/** In bytes of a JSON string: a larger report is sent to other cores without labels. */
const SENT_MAX_BYTES = 5_000;
/** Ours: the parts of a lease after which a report without a change is sent to other cores. */
const RESENT = 1 / 4;

export type KnownRunner = {
  runnerId: string;
  silentMs: number;
  isPresent: boolean;
  browserFailed: boolean;
  isDraining: boolean;
  browser: RunnerBrowser | undefined;
  facts: RunnerFacts | undefined;
};

/** A database that several cores share. */
export type DatabaseServer = {
  /** A sentence for an operation's fault, which names the setting. */
  problemOf(fault: unknown): string | undefined;
  /** In milliseconds, how far this machine's clock is from that of the server, with its sign. */
  offMs(): number;
  /** The setting of the connection for wakes and for the leader. */
  lineSetting: string;
};

export type Readiness = {
  /** Records a runner's report; what it does not report is as before. */
  record(runner: Report): void;
  /** Each runner that has reported; `silentMs`: since its last report. */
  list(): KnownRunner[];
  /** Runners that reported within a lease's time; draining ones are not able. */
  runners(): RunnerCounts;
  /** Work of each kind that the runners of a lease's time run at once, as they reported. */
  places(): Record<'session' | 'invocation' | 'build', number>;
  /** The Chromes of the runners that reported within a lease's time. */
  browsers(): ReportedBrowser[];
};

/** `able`: leases work, and its browser starts. */
export type RunnerCounts = { present: number; able: number; draining: number };

/** `startedAt`: when one started last, by core's time. */
export type ReportedBrowser = Pick<RunnerBrowser, 'product' | 'buildMs' | 'spares'> & {
  startedAt: number;
};
type Report = {
  runnerId: string;
  browserFailed?: boolean | undefined;
  isDraining?: boolean | undefined;
  browser?: RunnerBrowser | undefined;
  facts?: RunnerFacts | undefined;
};
type Known = {
  at: number;
  browserFailed: boolean;
  isDraining: boolean;
  browser: ReportedBrowser | undefined;
  facts: RunnerFacts | undefined;
};

export function openReadiness(options: {
  store: Pick<Store, 'sendToCores' | 'onCoreMessage'>;
  now: () => number;
  leaseMs: number;
}): Readiness {
  const { store, now, leaseMs } = options;
  const known = new LRUCache<string, Known>({ max: RUNNERS_MAX });
  const sentAt = new LRUCache<string, number>({ max: RUNNERS_MAX });
  const recent = () => [...known.values()].filter(({ at }) => now() - at <= leaseMs);
  /** Whether the runner's facts, or whether it leases work, differ from before. */
  const keep = ({ runnerId, browserFailed, isDraining, browser, facts }: Report): boolean => {
    const before = known.get(runnerId);
    const at = now();
    const after = {
      at,
      browserFailed: browserFailed ?? before?.browserFailed ?? false,
      isDraining: isDraining ?? before?.isDraining ?? false,
      browser: browser === undefined ? before?.browser : reported(browser, at),
      facts: facts ?? before?.facts,
    };
    known.set(runnerId, after);
    const told = ({ browserFailed, isDraining, facts }: Known) => ({
      browserFailed,
      isDraining,
      facts,
    });
    return before === undefined || !isDeepStrictEqual(told(before), told(after));
  };
  store.onCoreMessage('runner', (content) => void keep(JSON.parse(content) as Report));
  return {
    record(report) {
      const { runnerId } = report;
      const silentMs = now() - (sentAt.get(runnerId) ?? Number.NEGATIVE_INFINITY);
      if (!keep(report) && silentMs < leaseMs * RESENT) return;
      sentAt.set(runnerId, now());
      store.sendToCores('runner', sent(report));
    },
    list() {
      return [...known.entries()].map(([runnerId, { at, browser, ...report }]) => {
        const silentMs = now() - at;
        const shown = browser && browserAt(browser, now());
        return { runnerId, silentMs, isPresent: silentMs <= leaseMs, browser: shown, ...report };
      });
    },
    runners() {
      const present = recent();
      const leasing = present.filter(({ isDraining }) => !isDraining);
      const able = leasing.filter(({ browserFailed }) => !browserFailed);
      const draining = present.length - leasing.length;
      return { present: present.length, able: able.length, draining };
    },
    places() {
      const sum = { session: 0, invocation: 0, build: 0 };
      for (const { facts } of recent()) {
        sum.session += facts?.sessions ?? 0;
        sum.invocation += facts?.invocations ?? 0;
        sum.build += facts?.builds ?? 0;
      }
      return sum;
    },
    browsers: () => recent().flatMap(({ browser }) => browser ?? []),
  };
}

function sent(report: Report): string {
  const whole = JSON.stringify(report);
  if (Buffer.byteLength(JSON.stringify(whole)) <= SENT_MAX_BYTES) return whole;
  return JSON.stringify({ ...report, facts: report.facts && { ...report.facts, labels: [] } });
}

function reported(browser: RunnerBrowser, at: number): ReportedBrowser {
  const { product, buildMs, spares, startedAgoMs } = browser;
  return { product, buildMs, spares, startedAt: at - startedAgoMs };
}

function browserAt({ startedAt, ...browser }: ReportedBrowser, at: number): RunnerBrowser {
  return { ...browser, startedAgoMs: Math.max(0, at - startedAt) };
}

type Options = {
  store: Pick<Store, 'lastTime' | 'syncP95Ms' | 'lineLostMs'>;
  disk: Disk;
  bucket: Pick<BucketHealth, 'problem'> | undefined;
  server: DatabaseServer | undefined;
  readiness: Readiness;
  /** Core's time, and the machine's. */
  now: () => number;
  wall: () => number;
  isHeld: () => boolean;
  log: Log;
};

export function healthService(
  options: Options,
): Service<typeof HealthServiceService, MachineCaller> {
  return { checkHealth: async () => ({ checks: await checksOf(options) }) };
}

async function checksOf(options: Options): Promise<HealthCheck[]> {
  const { store, disk, bucket, server, readiness, now, wall, isHeld, log } = options;

  /** The fault of a database that does not answer a read, or of the connection for wakes. */
  async function ofCore(): Promise<string> {
    try {
      await inTime(store.lastTime());
      return lineFault();
    } catch (error) {
      log.error({ err: error }, 'the database does not answer');
      return server?.problemOf(error) ?? 'The database does not answer.';
    }
  }

  /** Without it no core is the leader, which ends lost work and starts schedules. */
  function lineFault(): string {
    const lostMs = store.lineLostMs();
    if (server === undefined || lostMs <= LINE_LOST_MS) return '';
    return (
      `The connection of ${server.lineSetting} has been lost for ` +
      `${Math.round(lostMs / 1_000)} s: start its server, or set its address.`
    );
  }

  /** Signatures and certificates are verified by this machine's clock. */
  function clockFault(): string {
    const offMs = server?.offMs() ?? 0;
    if (Math.abs(offMs) <= SERVER_OFF_MS) return '';
    const way = offMs > 0 ? 'ahead of' : 'behind';
    const seconds = Math.round(Math.abs(offMs) / 1_000);
    return `This machine’s clock is ${seconds} s ${way} the database’s: set both by NTP.`;
  }

  /** The warning of a slow disk: every acknowledged write waits for it. */
  function slowness(): string {
    const ms = store.syncP95Ms() ?? 0;
    if (ms < SYNC_SLOW_MS) return '';
    return `Writes wait ${Math.round(ms)} ms for the disk (95th percentile).`;
  }

  function offset(): string {
    if (server !== undefined) return isHeld() ? WAS_SET : '';
    const seconds = Math.round((now() - wall()) / 1_000);
    if (Math.abs(seconds) * 1_000 <= CLOCK_OFF_MS) return isHeld() ? WAS_SET : '';
    const way = seconds > 0 ? 'ahead of' : 'behind';
    return `Core’s time is ${Math.abs(seconds)} s ${way} the machine’s.`;
  }

  const runners = readiness.runners();
  return [
    { name: 'core', fault: await ofCore(), warning: '' },
    { name: 'disk', fault: disk.isLow ? 'The disk is almost full.' : '', warning: slowness() },
    ...(bucket ? [{ name: 'bucket', fault: bucket.problem, warning: '' }] : []),
    { name: 'clock', fault: clockFault(), warning: offset() },
    { name: 'runner', fault: withoutRunner(runners), warning: '' },
    { name: 'browser', fault: withoutBrowser(runners), warning: '' },
  ];
}

/**
 * Why core itself accepts no work, whatever its runners do; undefined when it does. Callers within
 * a second share one answer, because they need no key.
 */
export function openOwnProblem(options: Options): () => Promise<string | undefined> {
  let latest: { at: number; answer: Promise<string | undefined> } | undefined;
  const find = async (): Promise<string | undefined> => {
    const checks = await checksOf(options);
    const faults = checks.filter(({ name, fault }) => OWN.has(name) && fault !== '');
    return faults.length === 0 ? undefined : faults.map(({ fault }) => fault).join(' ');
  };
  return () => {
    const at = performance.now();
    if (latest === undefined || at - latest.at >= KEPT_MS) latest = { at, answer: find() };
    return latest.answer;
  };
}

async function inTime(read: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const late = pause(READ_MS, over.signal).then(() => {
    if (!over.signal.aborted) throw Object.assign(new Error('no answer in time'), LATE);
  });
  try {
    await Promise.race([read, late]);
  } finally {
    over.abort();
  }
}

function withoutRunner({ present, draining }: RunnerCounts): string {
  if (present === 0) return 'No runner is registered.';
  return draining === present ? 'Each runner drains: no new work starts.' : '';
}

function withoutBrowser({ present, able, draining }: RunnerCounts): string {
  return present > draining && able === 0 ? 'No browser starts: see the runner’s log.' : '';
}
