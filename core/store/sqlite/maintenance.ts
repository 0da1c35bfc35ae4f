/**
 * Retention and metrics in SQLite. An operation removes few rows, so that others do not wait. An
 * event is removed when all its deliveries have ended: first attempts, then deliveries, so that an
 * operation may stop anywhere. A deleted webhook stays as a tombstone as long as its deliveries.
 */
import { must } from '../../../proto/common/must.ts';
import { oldIds } from '../../common/ids.ts';
import type { RemovalStatements } from '../operations/functions/removals.ts';
import { OPEN_DELIVERY } from '../operations/states.ts';
import { reasonLabel } from '../operations/texts.ts';
import type {
  EndCount,
  MetricOps,
  RetentionOps,
  SessionRetentionOps,
  StoreMetrics,
} from '../types/maintenance.ts';
import { inStates, queries, statements } from './engine/statements.ts';
import type { Tx } from './engine/transaction.ts';
import { hasOldId } from './times.ts';
import { dayCounter } from './webhooks/days.ts';
import { dueRecount } from './webhooks/due.ts';

export function retentionOps(tx: Tx): RetentionOps {
  const sql = { ...eventQueries(tx), ...backlogQueries(tx), recountDue: dueRecount(tx) };
  const countDay = dayCounter(tx);

  /** Removes rows of one event; returns their number. */
  function purge(id: string, max: number): number {
    let left = max - sql.attempts(id, max);
    if (left > 0) left -= sql.deliveries(id, left);
    if (left > 0) left -= sql.event(id);
    return max - left;
  }

  return {
    purgeEvents({ before, at, max }) {
      let left = max;
      for (const id of sql.old({ ...oldIds({ before, at }), max })) {
        left -= purge(id, left);
        if (left <= 0) return max;
      }
      left -= sql.daysOf(before, left);
      if (left > 0) left -= sql.webhooks(before, left);
      sql.listeners(at);
      tx.crashPoint('purge-events');
      return max - left;
    },

    backlogs: (pendingMax) =>
      sql.waiting().filter((id) => sql.pending(id, pendingMax + 1) > pendingMax),

    skipBacklog({ webhookId, pendingMax, max, at }) {
      const over = sql.pending(webhookId, pendingMax + max) - pendingMax;
      if (over <= 0) return 0;
      const skipped = sql.skip(at, webhookId, over);
      sql.recountDue(webhookId);
      countDay(webhookId, at, { lost: skipped });
      return skipped;
    },
  };
}

function eventQueries(tx: Tx) {
  const { values, changes } = queries(tx);
  return {
    // Index events_by_age.
    old: values<[object], string>(`
      SELECT id FROM events
      WHERE created_at < @before AND ${hasOldId('id')} AND NOT EXISTS (
        SELECT 1 FROM deliveries
        WHERE event_id = events.id AND state ${inStates(OPEN_DELIVERY)})
      ORDER BY created_at LIMIT @max`),
    attempts: changes<[string, number]>(`
      DELETE FROM attempts WHERE id IN (
        SELECT attempts.id
        FROM deliveries CROSS JOIN attempts ON attempts.delivery_id = deliveries.id
        WHERE event_id = ? LIMIT ?)`),
    deliveries: changes<[string, number]>(`
      DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE event_id = ? LIMIT ?)`),
    event: changes<[string]>(`
      DELETE FROM events
      WHERE id = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE event_id = events.id)`),
    // Index webhooks_deleted.
    daysOf: changes<[number, number]>(`
      DELETE FROM webhook_days WHERE (webhook_id, day) IN (
        SELECT webhook_id, day FROM webhooks CROSS JOIN webhook_days ON webhook_id = webhooks.id
        WHERE status = 'deleted' AND updated_at < ? LIMIT ?)`),
    webhooks: changes<[number, number]>(`
      DELETE FROM webhooks WHERE id IN (
        SELECT id FROM webhooks
        WHERE status = 'deleted' AND updated_at < ?
          AND NOT EXISTS (SELECT 1 FROM deliveries WHERE webhook_id = webhooks.id)
          AND NOT EXISTS (SELECT 1 FROM webhook_days WHERE webhook_id = webhooks.id)
        LIMIT ?)`),
    listeners: changes<[number]>('DELETE FROM listeners WHERE until <= ?'),
  };
}

function backlogQueries(tx: Tx) {
  const { values, number, changes } = queries(tx);
  return {
    // Index webhooks_due.
    waiting: values<[], string>(
      `SELECT id FROM webhooks WHERE next_due IS NOT NULL AND status <> 'deleted'`,
    ),
    // Index deliveries_due.
    pending: number<[string, number]>(`
      SELECT COUNT(*) FROM (
        SELECT 1 FROM deliveries INDEXED BY deliveries_due
        WHERE webhook_id = ? AND state = 'pending' LIMIT ?)`),
    skip: changes<[number, string, number]>(`
      UPDATE deliveries SET state = 'skipped', reason = 'backlog', due = NULL, done_at = ?
      WHERE id IN (
        SELECT id FROM deliveries INDEXED BY deliveries_due
        WHERE webhook_id = ? AND state = 'pending' ORDER BY due LIMIT ?)`),
  };
}

/** Ids of rows that ended before `before`, from behind `after`. */
const ended = (table: string): string => `
  SELECT id FROM ${table} WHERE id > @after AND id < @beforeId AND ended_at < @before
  ORDER BY id LIMIT @max`;

export function removalStatements(tx: Tx): RemovalStatements {
  return {
    ...logStatements(tx),
    ...invocationStatements(tx),
    ...buildStatements(tx),
    ...deletedStatements(tx),
  };
}

function logStatements(tx: Tx) {
  const { changes, write } = statements(tx);
  return {
    lines: changes<[string, number]>(`
      DELETE FROM log_lines WHERE (owner_id, number) IN (
        SELECT owner_id, number FROM log_lines WHERE owner_id < ? ORDER BY owner_id LIMIT ?)`),
    heads: changes<[string, number]>(`
      DELETE FROM log_heads WHERE owner_id IN (
        SELECT owner_id FROM log_heads WHERE owner_id < ?
          AND NOT EXISTS (SELECT 1 FROM log_lines WHERE owner_id = log_heads.owner_id)
        ORDER BY owner_id LIMIT ?)`),
    linesOf: changes<[string, number]>(`
      DELETE FROM log_lines WHERE (owner_id, number) IN (
        SELECT owner_id, number FROM log_lines WHERE owner_id = ? LIMIT ?)`),
    headOf: write<[string]>('DELETE FROM log_heads WHERE owner_id = ?'),
  };
}

/** Index idempotency_keys_by_invocation. */
function invocationStatements(tx: Tx) {
  const { values, changes, write } = statements(tx);
  return {
    invocations: values<[object], string>(ended('invocations')),
    keys: write<[string]>('DELETE FROM idempotency_keys WHERE invocation_id = ?'),
    invocation: changes<[string]>('DELETE FROM invocations WHERE id = ?'),
  };
}

function buildStatements(tx: Tx) {
  const { values, exists, changes } = statements(tx);
  return {
    builds: values<[object], string>(ended('builds')),
    // Indexes versions_by_build, versions_by_function and invocations_by_version.
    versions: values<[string], string>(`
      SELECT id FROM versions
      WHERE build_id = ?
        AND EXISTS (SELECT 1 FROM versions AS newer
          WHERE newer.function_id = versions.function_id AND newer.id > versions.id)
        AND NOT EXISTS (SELECT 1 FROM invocations WHERE version_id = versions.id)`),
    version: changes<[string]>('DELETE FROM versions WHERE id = ?'),
    hasVersion: exists<[string]>('SELECT 1 FROM versions WHERE build_id = ?'),
    build: changes<[string]>('DELETE FROM builds WHERE id = ?'),
  };
}

/** Rows of deleted functions; of a running invocation there is none. */
function deletedStatements(tx: Tx) {
  const { rows, values, exists, changes } = statements(tx);
  return {
    // Index functions_deleted.
    deletedFunctions: values<[number], string>(`
      SELECT id FROM functions WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT ?`),
    deletedOne: values<[string], string>(
      'SELECT id FROM functions WHERE id = ? AND deleted_at IS NOT NULL',
    ),
    deletedFunction: changes<[string]>('DELETE FROM functions WHERE id = ?'),
    // Index versions_by_function.
    versionsOf: rows<[string, number], { id: string; buildId: string }>(
      'SELECT id, build_id AS buildId FROM versions WHERE function_id = ? ORDER BY id LIMIT ?',
    ),
    // Index versions_by_build.
    hasOther: exists<[string, string]>('SELECT 1 FROM versions WHERE build_id = ? AND id <> ?'),
    // Index invocations_by_version.
    invocationsOf: values<[string, number], string>(
      'SELECT id FROM invocations WHERE version_id = ? ORDER BY id LIMIT ?',
    ),
    blobsOf: values<[object], string>(`
      SELECT id FROM blobs WHERE id IN (
        SELECT archive_blob_id FROM builds WHERE id = @id
        UNION SELECT bundle_blob_id FROM builds WHERE id = @id)`),
    // Indexes builds_by_archive and builds_by_bundle.
    blob: values<[string], string>(`
      DELETE FROM blobs WHERE id = ?
        AND NOT EXISTS (SELECT 1 FROM builds WHERE archive_blob_id = blobs.id)
        AND NOT EXISTS (SELECT 1 FROM builds WHERE bundle_blob_id = blobs.id)
      RETURNING id`),
  };
}

/** Tables that refer to a session, each with an index that begins with its id. */
const REFERRING = ['invocations', 'session_logs', 'session_log_heads', 'recordings', 'downloads'];

export function sessionRetentionOps(tx: Tx): SessionRetentionOps {
  const { values, exists, changes } = queries(tx);
  const old = values<[object], string>(ended('sessions'));
  const isReferred = exists<[object]>(
    REFERRING.map((table) => `SELECT 1 FROM ${table} WHERE session_id = @id`).join(' UNION ALL '),
  );
  const metadata = changes<[string]>('DELETE FROM session_metadata WHERE session_id = ?');
  const labels = changes<[string]>('DELETE FROM session_labels WHERE session_id = ?');
  // a session has at most 100
  const handoffs = changes<[string]>('DELETE FROM handoffs WHERE session_id = ?');
  const session = changes<[string]>('DELETE FROM sessions WHERE id = ?');

  return {
    purgeSessions(purge) {
      const ids = old(purge);
      const free = ids.filter((id) => !isReferred({ id }));
      for (const id of free) {
        metadata(id);
        labels(id);
        handoffs(id);
        session(id);
      }
      tx.crashPoint('purge-sessions');
      return { removed: free.length, last: ids.length < purge.max ? undefined : ids.at(-1) };
    },
  };
}

const TRIGGERS = `
  CREATE TEMP TRIGGER tally_sessions AFTER UPDATE OF ended_at ON main.sessions
  WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL BEGIN
    SELECT tally('session', NEW.status, NEW.end_reason);
  END;
  CREATE TEMP TRIGGER tally_deliveries AFTER UPDATE OF state ON main.deliveries
  WHEN OLD.state <> NEW.state AND NEW.state NOT ${inStates(OPEN_DELIVERY)} BEGIN
    SELECT tally('delivery', NEW.state, '');
  END;
  CREATE TEMP TRIGGER tally_interrupted AFTER UPDATE OF outcome ON main.attempts
  WHEN NEW.outcome = 'interrupted' BEGIN
    SELECT tally('interrupted', '', '');
  END;`;

export function metricOps(tx: Tx): MetricOps {
  const { db } = tx;
  const counts = new Map<string, EndCount>();
  const gauges = metricQueries(tx);
  let isCounting = false;

  function count(what: EndCount['what'], first: string, reason: string | null): null {
    const labels = { session: [first, reasonLabel(reason)], delivery: [first], interrupted: [] }[
      what
    ];
    const key = [what, ...labels].join(' ');
    const counted = counts.get(key) ?? { what, labels, count: 0 };
    counted.count += 1;
    counts.set(key, counted);
    return null;
  }

  return {
    metrics() {
      if (!isCounting) {
        db.function('tally', count as (...given: unknown[]) => unknown);
        db.exec(TRIGGERS);
        isCounting = true;
      }
      return {
        ...must(gauges.deliveries(), 'counts'),
        work: gauges.work(),
        webhooks: gauges.webhooks(),
        counts: [...counts.values()],
      };
    },
  };
}

function metricQueries(tx: Tx) {
  const { row, rows } = queries(tx);
  return {
    work: rows<[], StoreMetrics['work'][number]>(`
      SELECT kind, SUM(ready) AS waiting, SUM(running) AS running FROM queues GROUP BY kind`),
    webhooks: rows<[], StoreMetrics['webhooks'][number]>(`
      SELECT status, COUNT(*) AS count FROM webhooks WHERE status <> 'deleted' GROUP BY status`),
    // Indexes deliveries_due, deliveries_leased, webhooks_due.
    deliveries: row<[], Pick<StoreMetrics, 'pending' | 'inFlight' | 'oldestDue'>>(`
      SELECT
        (SELECT COUNT(*) FROM deliveries INDEXED BY deliveries_due WHERE state = 'pending')
          AS pending,
        (SELECT COUNT(*) FROM deliveries INDEXED BY deliveries_leased WHERE state = 'in_flight')
          AS inFlight,
        (SELECT MIN(next_due) FROM webhooks WHERE next_due IS NOT NULL AND status <> 'deleted')
          AS oldestDue`),
  };
}
