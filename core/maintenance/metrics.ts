/**
 * Core's metrics: waiting and running work, and the ends of sessions and deliveries. Names of
 * webhook metrics: proto/spec/webhooks.md 12. Metrics carry no per-project labels.
 */
import type { Family, Metrics } from '../../proto/common/metrics.ts';
import type { Disk } from '../files/disk-space.ts';
import type { AttemptEnd } from '../store/types/deliveries.ts';
import type { EndCount, StoreMetrics } from '../store/types/maintenance.ts';
import type { Store } from '../store/types.ts';
import type { Readiness } from './readiness.ts';

const WAITING: Family = {
  name: 'tabern_queue_waiting',
  help: 'Work that waits for a runner.',
  labels: ['kind'],
};
const RUNNING: Family = {
  name: 'tabern_queue_running',
  help: 'Work that a runner has.',
  labels: ['kind'],
};
const RUNNERS: Family = {
  name: 'tabern_runners',
  help:
    'Runners that reported within a lease (heard); able: those that lease work and whose newest ' +
    'Chrome started; draining: those that lease no more.',
  labels: ['state'],
};
const PLACES: Family = {
  name: 'tabern_runner_places',
  help: 'Work that the runners that reported within a lease run at once.',
  labels: ['kind'],
};
const DISK_FREE: Family = {
  name: 'tabern_disk_free_bytes',
  help: 'Free on the data directory’s disk.',
};
const SYNC_P95: Family = {
  name: 'tabern_disk_sync_p95_seconds',
  help: 'How long commits have lately waited for the disk: the 95th percentile of ten minutes.',
};
const SESSIONS: Family = {
  name: 'tabern_sessions_ended_total',
  help: 'Sessions that ended, by status and reason; a function’s session has the reason function.',
  labels: ['status', 'reason'],
};
const DELIVERIES: Family = {
  name: 'webhook_deliveries_total',
  help: 'Deliveries that ended.',
  labels: ['state'],
};
const DUPLICATE_RISK: Family = {
  name: 'webhook_duplicate_risk_total',
  help: 'Attempts whose sender was lost: their events may arrive twice.',
};
const PENDING: Family = { name: 'webhook_pending', help: 'Deliveries that wait for their time.' };
const IN_FLIGHT: Family = { name: 'webhook_inflight', help: 'Deliveries under way.' };
const OLDEST_DUE: Family = {
  name: 'webhook_oldest_due_seconds',
  help: 'How long the delivery that waits longest has been due.',
};
const ENDPOINTS: Family = {
  name: 'webhook_endpoints',
  help: 'Webhooks by status.',
  labels: ['status'],
};
const ATTEMPTS: Family = {
  name: 'webhook_attempts_total',
  help: 'Attempts by outcome and class of HTTP status.',
  labels: ['outcome', 'class'],
};
const ATTEMPT_SECONDS: Family = {
  name: 'webhook_attempt_seconds',
  help: 'How long attempts took.',
  buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 22],
};
const COMMIT_TO_SEND: Family = {
  name: 'webhook_commit_to_send_seconds',
  help: 'From an event’s commit until the first attempt of a delivery was handed to a sender.',
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 10, 60],
};

/** Sets core's gauges and counters whenever metrics are read. */
export async function watchCore(
  metrics: Metrics,
  deps: {
    store: Pick<Store, 'metrics' | 'syncP95Ms'>;
    disk: Disk;
    readiness: Readiness;
    now: () => number;
  },
): Promise<void> {
  const { store, disk, readiness, now } = deps;
  const shown = new Map<string, number>();
  const count = (family: Family, labels: Record<string, string>, ended: EndCount): void => {
    const key = [ended.what, ...ended.labels].join(' ');
    metrics.add(family, labels, ended.count - (shown.get(key) ?? 0));
    shown.set(key, ended.count);
  };
  await store.metrics(); // starts the counting of ends
  metrics.atReading(async () => {
    const stored = await store.metrics();
    setMetrics(metrics, stored, now());
    for (const ended of stored.counts) {
      const [first = '', reason = ''] = ended.labels;
      if (ended.what === 'session') count(SESSIONS, { status: first, reason }, ended);
      else if (ended.what === 'delivery') count(DELIVERIES, { state: first }, ended);
      else count(DUPLICATE_RISK, {}, ended);
    }
    const { present, able, draining } = readiness.runners();
    metrics.set(RUNNERS, present, { state: 'heard' });
    metrics.set(RUNNERS, able, { state: 'able' });
    metrics.set(RUNNERS, draining, { state: 'draining' });
    for (const [kind, count] of Object.entries(readiness.places())) {
      metrics.set(PLACES, count, { kind });
    }
    metrics.set(DISK_FREE, disk.freeBytes);
    metrics.set(SYNC_P95, (store.syncP95Ms() ?? 0) / 1_000);
  });
}

function setMetrics(metrics: Metrics, stored: StoreMetrics, at: number): void {
  for (const { kind, waiting, running } of stored.work) {
    metrics.set(WAITING, waiting, { kind });
    metrics.set(RUNNING, running, { kind });
  }
  for (const status of ['enabled', 'disabled']) {
    const found = stored.webhooks.find((one) => one.status === status);
    metrics.set(ENDPOINTS, found?.count ?? 0, { status });
  }
  metrics.set(PENDING, stored.pending);
  metrics.set(IN_FLIGHT, stored.inFlight);
  const { oldestDue } = stored;
  metrics.set(OLDEST_DUE, oldestDue === null ? 0 : Math.max(0, at - oldestDue) / 1_000);
}

/** Counts the end of one attempt. */
export function countAttempt(metrics: Metrics, end: AttemptEnd): void {
  const { outcome, status, latencyMs } = end;
  if (outcome === 'unsent') return;
  const hundreds = Math.floor(status / 100);
  const group = hundreds >= 1 && hundreds <= 5 ? `${hundreds}xx` : 'none';
  metrics.add(ATTEMPTS, { outcome, class: group });
  metrics.observe(ATTEMPT_SECONDS, latencyMs / 1_000);
}

/** Observes the first attempt of a delivery; an event's id contains its time (UUID v7). */
export function countClaim(
  metrics: Metrics,
  claim: { eventId: string; n: number },
  at: number,
): void {
  if (claim.n !== 1) return;
  const committedAt = Number.parseInt(claim.eventId.replaceAll('-', '').slice(0, 12), 16);
  metrics.observe(COMMIT_TO_SEND, Math.max(0, at - committedAt) / 1_000);
}
