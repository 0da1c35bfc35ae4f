/**
 * Retention of events in PostgreSQL. An operation removes few rows, so that others do not wait. An
 * event is removed when all its deliveries have ended: first attempts, then deliveries, so that an
 * operation may stop anywhere. A deleted webhook stays as a tombstone as long as its deliveries.
 */
import { oldIds } from '../../../common/ids.ts';
import { OPEN_DELIVERY } from '../../operations/states.ts';
import type { Steps } from '../../operations/steps.ts';
import type { RetentionOps } from '../../types/maintenance.ts';
import { inStates, statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { dayCounter } from '../webhooks/days.ts';
import { dueRecount } from '../webhooks/due.ts';
import { hasOldId } from './old-ids.ts';
import { deleteSome } from './some.ts';

export function retentionOps(tx: Tx): InReads<RetentionOps> {
  const sql = { ...eventStatements(tx), ...backlogStatements(tx), recountDue: dueRecount(tx) };
  const countDay = dayCounter(tx);

  /** Removes rows of one event; returns their number. */
  function* purge(id: string, max: number): Steps<number> {
    let left = max - (yield* sql.attempts(id, max));
    if (left > 0) left -= yield* sql.deliveries(id, left);
    if (left > 0) left -= yield* sql.event(id);
    return max - left;
  }

  return {
    *purgeEvents({ before, at, max }) {
      let left = max;
      for (const id of yield* sql.old({ ...oldIds({ before, at }), max })) {
        left -= yield* purge(id, left);
        if (left <= 0) return max;
      }
      left -= yield* sql.daysOf(before, left);
      if (left > 0) left -= yield* sql.webhooks(before, left);
      sql.listeners(at);
      tx.crashPoint('purge-events');
      return max - left;
    },

    // Indexes webhooks_due and deliveries_due.
    *backlogs(pendingMax) {
      const ids = yield* sql.waiting();
      const counts = ids.map((id) => ({ id, count: sql.pending(id, pendingMax + 1) }));
      const over: string[] = [];
      for (const { id, count } of counts) if ((yield* count) > pendingMax) over.push(id);
      return over;
    },

    *skipBacklog({ webhookId, pendingMax, max, at }) {
      sql.lockWebhook(webhookId);
      const over = (yield* sql.pending(webhookId, pendingMax + max)) - pendingMax;
      if (over <= 0) return 0;
      const skipped = yield* sql.skip(at, webhookId, over);
      sql.recountDue(webhookId);
      countDay(webhookId, at, { lost: skipped });
      return skipped;
    },
  };
}

function eventStatements(tx: Tx) {
  const { values, changes, write } = statements(tx);
  return {
    // Index events_by_age.
    old: values<[object], string>(`
      SELECT id FROM events
      WHERE created_at < @before AND ${hasOldId('id')} AND NOT EXISTS (
        SELECT 1 FROM deliveries
        WHERE event_id = events.id AND state ${inStates(OPEN_DELIVERY)})
      ORDER BY created_at LIMIT @max`),
    attempts: changes<[string, number]>(
      deleteSome(
        'attempts',
        `deliveries JOIN attempts ON attempts.delivery_id = deliveries.id
        WHERE event_id = ? LIMIT ?`,
      ),
    ),
    deliveries: changes<[string, number]>(
      deleteSome('deliveries', 'deliveries WHERE event_id = ? LIMIT ?'),
    ),
    event: changes<[string]>(`
      DELETE FROM events
      WHERE id = ? AND NOT EXISTS (SELECT 1 FROM deliveries WHERE event_id = events.id)`),
    // Index webhooks_deleted.
    daysOf: changes<[number, number]>(
      deleteSome(
        'webhook_days',
        `webhooks JOIN webhook_days ON webhook_id = webhooks.id
        WHERE status = 'deleted' AND updated_at < ? LIMIT ?`,
      ),
    ),
    webhooks: changes<[number, number]>(
      deleteSome(
        'webhooks',
        `webhooks
        WHERE status = 'deleted' AND updated_at < ?
          AND NOT EXISTS (SELECT 1 FROM deliveries WHERE webhook_id = webhooks.id)
          AND NOT EXISTS (SELECT 1 FROM webhook_days WHERE webhook_id = webhooks.id)
        LIMIT ?`,
      ),
    ),
    listeners: write<[number]>('DELETE FROM listeners WHERE until <= ?'),
  };
}

function backlogStatements(tx: Tx) {
  const { values, number, changes, write } = statements(tx);
  return {
    lockWebhook: write<[string]>('SELECT 1 FROM webhooks WHERE id = ? FOR NO KEY UPDATE'),
    waiting: values<[], string>(
      `SELECT id FROM webhooks WHERE next_due IS NOT NULL AND status <> 'deleted'`,
    ),
    pending: number<[string, number]>(`
      SELECT COUNT(*) FROM (
        SELECT 1 FROM deliveries WHERE webhook_id = ? AND state = 'pending' LIMIT ?) AS few`),
    skip: changes<[number, string, number]>(`
      UPDATE deliveries SET state = 'skipped', reason = 'backlog', due = NULL, done_at = ?
      WHERE id = ANY(ARRAY(
        SELECT id FROM deliveries
        WHERE webhook_id = ? AND state = 'pending' ORDER BY due LIMIT ?))`),
  };
}
