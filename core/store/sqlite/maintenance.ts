/**
 * Retention in SQLite: few rows in an operation, so that nobody waits for it. An event goes when
 * all its deliveries have ended; its attempts go first, then its deliveries, so that an operation
 * may stop anywhere. A webhook that was deleted stays a tombstone as long as its deliveries do.
 */
import { oldIds } from '../../common/ids.ts';
import { reasonLabel } from '../operations/texts.ts';
import type { WorkKind } from '../types/leases.ts';
import type {
  EndCount,
  MetricOps,
  RetentionOps,
  SessionRetentionOps,
  StoreMetrics,
  WorkRetentionOps,
} from '../types/maintenance.ts';
import type { Tx } from './engine/transaction.ts';
import { MINUTES_USED } from './projects.ts';
import { hasOldId } from './times.ts';
import { dueRecount } from './webhooks/due.ts';

export function retentionOps(tx: Tx): RetentionOps {
  const sql = { ...preparePurge(tx), ...prepareBacklog(tx), recountDue: dueRecount(tx) };

  /** Of one event; how many rows. */
  function purge(id: string, max: number): number {
    let left = max - sql.attempts.run(id, max).changes;
    if (left > 0) left -= sql.deliveries.run(id, left).changes;
    if (left > 0) left -= sql.event.run(id).changes;
    return max - left;
  }

  return {
    purgeEvents({ before, at, max }) {
      let left = max;
      for (const id of sql.old.all({ ...oldIds({ before, at }), max })) {
        left -= purge(id, left);
        if (left <= 0) return max;
      }
      left -= sql.webhooks.run(before, left).changes;
      sql.listeners.run(at);
      tx.crashPoint('purge-events');
      return max - left;
    },

    backlogs: (pendingMax) =>
      sql.waiting.all().filter((id) => (sql.pending.get(id, pendingMax + 1) ?? 0) > pendingMax),

    skipBacklog({ webhookId, pendingMax, max, at }) {
      const over = (sql.pending.get(webhookId, pendingMax + max) ?? 0) - pendingMax;
      if (over <= 0) return 0;
      const { changes } = sql.skip.run(at, webhookId, over);
      sql.recountDue.run(webhookId);
      return changes;
    },
  };
}

function preparePurge({ db }: Tx) {
  return {
    // Index events_by_age.
    old: db
      .prepare<[object], string>(`
        SELECT id FROM events
        WHERE created_at < @before AND ${hasOldId('id')} AND NOT EXISTS (
          SELECT 1 FROM deliveries
          WHERE event_id = events.id AND state IN ('pending', 'in_flight'))
        ORDER BY created_at LIMIT @max`)
      .pluck(),
    attempts: db.prepare<[string, number]>(`
      DELETE FROM attempts WHERE id IN (
        SELECT attempts.id
        FROM deliveries CROSS JOIN attempts ON attempts.delivery_id = deliveries.id
        WHERE event_id = ? LIMIT ?)`),
    deliveries: db.prepare<[string, number]>(`
      DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE event_id = ? LIMIT ?)`),
    event: db.prepare<[string]>(`
      DELETE FROM events
      WHERE id = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE event_id = events.id)`),
    // Index webhooks_deleted.
    webhooks: db.prepare<[number, number]>(`
      DELETE FROM webhooks WHERE id IN (
        SELECT id FROM webhooks
        WHERE status = 'deleted' AND updated_at < ?
          AND NOT EXISTS (SELECT 1 FROM deliveries WHERE webhook_id = webhooks.id)
        LIMIT ?)`),
    listeners: db.prepare<[number]>('DELETE FROM listeners WHERE until <= ?'),
  };
}

function prepareBacklog({ db }: Tx) {
  return {
    // Index webhooks_due.
    waiting: db
      .prepare<[], string>(
        `SELECT id FROM webhooks WHERE next_due IS NOT NULL AND status <> 'deleted'`,
      )
      .pluck(),
    // Index deliveries_due.
    pending: db
      .prepare<[string, number], number>(`
        SELECT COUNT(*) FROM (
          SELECT 1 FROM deliveries INDEXED BY deliveries_due
          WHERE webhook_id = ? AND state = 'pending' LIMIT ?)`)
      .pluck(),
    skip: db.prepare<[number, string, number]>(`
      UPDATE deliveries SET state = 'skipped', reason = 'backlog', due = NULL, done_at = ?
      WHERE id IN (
        SELECT id FROM deliveries INDEXED BY deliveries_due
        WHERE webhook_id = ? AND state = 'pending' ORDER BY due LIMIT ?)`),
  };
}

export function workRetentionOps(tx: Tx): WorkRetentionOps {
  const sql = { ...prepareLogs(tx), ...prepareInvocations(tx), ...prepareBuilds(tx) };

  /** One build: its versions that nobody needs, then itself when none is left. */
  function purgeBuild(id: string): boolean {
    for (const versionId of sql.versions.all(id)) sql.version.run(versionId);
    if (sql.build.run(id).changes === 0) return false;
    sql.linesOf.run(id, -1);
    sql.headOf.run(id);
    return true;
  }

  /** One invocation, its log first, so that an operation may stop anywhere; how many rows. */
  function purgeInvocation(id: string, max: number): number {
    const lines = sql.linesOf.run(id, max).changes;
    if (lines >= max) return max;
    sql.keys.run(id);
    sql.headOf.run(id);
    sql.invocation.run(id);
    return lines + 1;
  }

  return {
    purgeLogs({ beforeId, max }) {
      const lines = sql.lines.run(beforeId, max).changes;
      const heads = lines < max ? sql.heads.run(beforeId, max - lines).changes : 0;
      tx.crashPoint('purge-logs');
      return lines + heads;
    },
    purgeInvocations(purge) {
      let left = purge.max;
      for (const id of sql.invocations.all({ after: '', ...purge })) {
        left -= purgeInvocation(id, left);
        if (left <= 0) break;
      }
      tx.crashPoint('purge-invocations');
      return purge.max - left;
    },
    purgeBuilds(purge) {
      const ids = sql.builds.all(purge);
      const removed = ids.filter(purgeBuild).length;
      tx.crashPoint('purge-builds');
      return { removed, last: ids.length < purge.max ? undefined : ids.at(-1) };
    },
  };
}

function prepareLogs({ db }: Tx) {
  return {
    lines: db.prepare<[string, number]>(`
      DELETE FROM log_lines WHERE (owner_id, number) IN (
        SELECT owner_id, number FROM log_lines WHERE owner_id < ? ORDER BY owner_id LIMIT ?)`),
    heads: db.prepare<[string, number]>(`
      DELETE FROM log_heads WHERE owner_id IN (
        SELECT owner_id FROM log_heads WHERE owner_id < ?
          AND NOT EXISTS (SELECT 1 FROM log_lines WHERE owner_id = log_heads.owner_id)
        ORDER BY owner_id LIMIT ?)`),
    linesOf: db.prepare<[string, number]>(`
      DELETE FROM log_lines WHERE (owner_id, number) IN (
        SELECT owner_id, number FROM log_lines WHERE owner_id = ? LIMIT ?)`),
    headOf: db.prepare<[string]>('DELETE FROM log_heads WHERE owner_id = ?'),
  };
}

/** Index idempotency_keys_by_invocation. */
function prepareInvocations({ db }: Tx) {
  return {
    invocations: db
      .prepare<[object], string>(`
        SELECT id FROM invocations WHERE id > @after AND id < @beforeId AND ended_at < @before
        ORDER BY id LIMIT @max`)
      .pluck(),
    keys: db.prepare<[string]>('DELETE FROM idempotency_keys WHERE invocation_id = ?'),
    invocation: db.prepare<[string]>('DELETE FROM invocations WHERE id = ?'),
  };
}

function prepareBuilds({ db }: Tx) {
  return {
    builds: db
      .prepare<[object], string>(`
        SELECT id FROM builds WHERE id > @after AND id < @beforeId AND ended_at < @before
        ORDER BY id LIMIT @max`)
      .pluck(),
    // Indexes versions_by_build, versions_by_function and invocations_by_version.
    versions: db
      .prepare<[string], string>(`
        SELECT id FROM versions
        WHERE build_id = ?
          AND EXISTS (SELECT 1 FROM versions AS newer
            WHERE newer.function_id = versions.function_id AND newer.id > versions.id)
          AND NOT EXISTS (SELECT 1 FROM invocations WHERE version_id = versions.id)`)
      .pluck(),
    version: db.prepare<[string]>('DELETE FROM versions WHERE id = ?'),
    build: db.prepare<[string]>(`
      DELETE FROM builds
      WHERE id = ? AND NOT EXISTS (SELECT 1 FROM versions WHERE build_id = builds.id)`),
  };
}

/** What refers to a session, each by an index that begins with its id. */
const REFERRING = ['invocations', 'session_logs', 'session_log_heads', 'recordings', 'downloads'];

export function sessionRetentionOps({ db, crashPoint }: Tx): SessionRetentionOps {
  const old = db
    .prepare<[object], string>(`
      SELECT id FROM sessions WHERE id > @after AND id < @beforeId AND ended_at < @before
      ORDER BY id LIMIT @max`)
    .pluck();
  const isReferred = REFERRING.map(
    (table) => `EXISTS (SELECT 1 FROM ${table} WHERE session_id = @id)`,
  );
  const kept = db.prepare<[object], number>(`SELECT ${isReferred.join(' OR ')}`).pluck();
  const count = db.prepare<[string]>(`
    UPDATE projects SET past_minutes = past_minutes + used.minutes,
      past_proxy_bytes = past_proxy_bytes + used.bytes
    FROM (SELECT project_id, IIF(started_at IS NULL, 0, ${MINUTES_USED}) AS minutes,
        IIF(started_at IS NULL, 0, proxy_bytes) AS bytes
      FROM sessions WHERE id = ?) AS used
    WHERE projects.id = used.project_id`);
  const metadata = db.prepare<[string]>('DELETE FROM session_metadata WHERE session_id = ?');
  const session = db.prepare<[string]>('DELETE FROM sessions WHERE id = ?');

  return {
    purgeSessions(purge) {
      const ids = old.all(purge);
      const free = ids.filter((id) => kept.get({ id }) === 0);
      for (const id of free) {
        count.run(id);
        metadata.run(id);
        session.run(id);
      }
      crashPoint('purge-sessions');
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
  WHEN OLD.state <> NEW.state AND NEW.state NOT IN ('pending', 'in_flight') BEGIN
    SELECT tally('delivery', NEW.state, '');
  END;
  CREATE TEMP TRIGGER tally_interrupted AFTER UPDATE OF outcome ON main.attempts
  WHEN NEW.outcome = 'interrupted' BEGIN
    SELECT tally('interrupted', '', '');
  END;`;

export function metricOps(tx: Tx): MetricOps {
  const { db } = tx;
  const counts = new Map<string, EndCount>();
  const sql = prepare(tx);
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
        ...(sql.deliveries.get() as DeliveryMetrics),
        ...lists(sql),
        counts: [...counts.values()],
      };
    },
  };
}

type DeliveryMetrics = Pick<StoreMetrics, 'pending' | 'inFlight' | 'oldestDue'>;

function lists(sql: ReturnType<typeof prepare>): Pick<StoreMetrics, 'work' | 'webhooks'> {
  return { work: sql.work.all(), webhooks: sql.webhooks.all() };
}

function prepare({ db }: Tx) {
  return {
    work: db.prepare<[], { kind: WorkKind; waiting: number; running: number }>(`
      SELECT kind, SUM(ready) AS waiting, SUM(running) AS running FROM queues GROUP BY kind`),
    webhooks: db.prepare<[], { status: string; count: number }>(`
      SELECT status, COUNT(*) AS count FROM webhooks WHERE status <> 'deleted' GROUP BY status`),
    // Indexes deliveries_due, deliveries_leased, webhooks_due.
    deliveries: db.prepare<[], DeliveryMetrics>(`
      SELECT
        (SELECT COUNT(*) FROM deliveries INDEXED BY deliveries_due WHERE state = 'pending')
          AS pending,
        (SELECT COUNT(*) FROM deliveries INDEXED BY deliveries_leased WHERE state = 'in_flight')
          AS inFlight,
        (SELECT MIN(next_due) FROM webhooks WHERE next_due IS NOT NULL AND status <> 'deleted')
          AS oldestDue`),
  };
}
