/**
 * Retention in SQLite: few rows in an operation, so that nobody waits for it. An event goes when
 * all its deliveries have ended; its attempts go first, then its deliveries, so that an operation
 * may stop anywhere. A webhook that was deleted stays a tombstone as long as its deliveries do.
 */
import type { RetentionOps } from '../types/maintenance.ts';
import type { Tx } from './engine/transaction.ts';
import { RECOUNT_DUE } from './webhooks/due.ts';

export function retentionOps(tx: Tx): RetentionOps {
  const sql = { ...preparePurge(tx), ...prepareBacklog(tx) };

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
      for (const id of sql.old.all(before, max)) {
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
      .prepare<[number, number], string>(`
        SELECT id FROM events
        WHERE created_at < ? AND NOT EXISTS (
          SELECT 1 FROM deliveries
          WHERE event_id = events.id AND state IN ('pending', 'in_flight'))
        ORDER BY created_at LIMIT ?`)
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
    recountDue: db.prepare<[string]>(RECOUNT_DUE),
  };
}
