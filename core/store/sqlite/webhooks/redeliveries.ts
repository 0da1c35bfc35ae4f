/**
 * What people ask to be sent, in SQLite: one delivery again, all that was skipped or exhausted in a
 * span of time, or a test. exhausted | skipped | delivered | cancelled -> pending, one generation
 * on: the same bytes, the whole schedule, signed anew. proto/spec/webhooks.md 4.
 */
import { must } from '../../../../proto/common/must.ts';
import { envelope } from '../../../delivery/envelope.ts';
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { DeliveryRow, ReplayOps } from '../../types/deliveries.ts';
import type { Tx } from '../engine/transaction.ts';
import { DELIVERY_COLUMNS } from './delivery-list.ts';
import { dueRecount, webhookFinder } from './due.ts';

type Found = { row: number; state: string };

export function replayOps(tx: Tx): ReplayOps {
  const sql = prepare(tx);

  return {
    replayDelivery({ webhookId, projectId, id, at }) {
      if (!sql.webhook.get(webhookId, projectId)) return undefined;
      const found = sql.find.get(id, webhookId);
      if (!found) return undefined;
      if (found.state === 'pending' || found.state === 'in_flight') return 'not-ended';
      sql.again.run(at, found.row);
      sql.recountDue.run(webhookId);
      tx.wake('deliveries');
      return sql.view.get(found.row);
    },

    recoverDeliveries({ webhookId, projectId, since, until, max, after, at }) {
      if (!sql.webhook.get(webhookId, projectId)) return undefined;
      const rows = sql.lost.all({ webhookId, since, until, after, max });
      for (const row of rows) sql.again.run(at, row);
      sql.recountDue.run(webhookId);
      tx.crashPoint('recover-deliveries');
      if (rows.length > 0) tx.wake('deliveries');
      return { count: rows.length, last: rows.at(-1) ?? after };
    },

    sendTestEvent({ webhookId, projectId, eventId: id, at }) {
      if (!sql.webhook.get(webhookId, projectId)) return undefined;
      const event = { id, type: TEST_TYPE, resourceId: webhookId, projectId, at };
      const body = envelope({ ...event, data: {} });
      sql.insertEvent.run({ ...event, body });
      const row = sql.insertDelivery.run({ id, webhookId, at }).lastInsertRowid;
      sql.recountDue.run(webhookId);
      tx.wake('deliveries');
      return must(sql.view.get(Number(row)), 'row');
    },
  };
}

function prepare(tx: Tx) {
  const { db } = tx;
  return {
    webhook: webhookFinder(tx),
    // The unique index of (event_id, webhook_id).
    find: db.prepare<[string, string], Found>(
      'SELECT id AS row, state FROM deliveries WHERE event_id = ? AND webhook_id = ?',
    ),
    view: db.prepare<[number], DeliveryRow>(`
      SELECT ${DELIVERY_COLUMNS}
      FROM deliveries JOIN events ON events.id = event_id WHERE deliveries.id = ?`),
    again: db.prepare<[number, number]>(`
      UPDATE deliveries
      SET state = 'pending', reason = NULL, due = ?, tries = 0, interrupted = 0, done_at = NULL,
        lease_until = NULL, generation = generation + 1
      WHERE id = ?`),
    // Index deliveries_by_state, once for each of the two: a sort of both would read them whole.
    lost: db
      .prepare<[object], number>(`
      SELECT id FROM (
        SELECT * FROM (${lostIn('skipped')})
        UNION ALL SELECT * FROM (${lostIn('exhausted')}))
      ORDER BY id LIMIT @max`)
      .pluck(),
    insertEvent: db.prepare<[object]>(`
      INSERT INTO events (id, project_id, type, resource_id, body, created_at)
      VALUES (@id, @projectId, @type, @resourceId, @body, @at)`),
    insertDelivery: db.prepare<[object]>(`
      INSERT INTO deliveries (event_id, webhook_id, is_test, state, due, created_at)
      VALUES (@id, @webhookId, 1, 'pending', @at, @at)`),
    recountDue: dueRecount(tx),
  };
}

function lostIn(state: 'skipped' | 'exhausted'): string {
  return `
    SELECT deliveries.id AS id
    FROM deliveries INDEXED BY deliveries_by_state JOIN events ON events.id = event_id
    WHERE webhook_id = @webhookId AND state = '${state}' AND state <> 'in_flight'
      AND deliveries.id > @after AND deliveries.created_at BETWEEN @since AND @until
      AND type <> '${TEST_TYPE}'
    ORDER BY deliveries.id LIMIT @max`;
}
