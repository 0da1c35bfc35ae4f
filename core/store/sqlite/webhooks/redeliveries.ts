/** Redeliveries and tests in SQLite. Rules: core/store/operations/delivery/redeliveries.ts. */
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { RedeliveryStatements } from '../../operations/delivery/redeliveries.ts';
import type { DeliveryRow } from '../../types/deliveries.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { DELIVERY_COLUMNS } from './delivery-list.ts';
import { dueRecount, webhookFinder } from './due.ts';

type Found = { row: number; state: string };

export function redeliveryStatements(tx: Tx): RedeliveryStatements {
  const sql = prepare(tx);
  return {
    hasWebhook: (id, projectId) => found(sql.webhook.get(id, projectId) !== undefined),
    find: (eventId, webhookId) => found(sql.find.get(eventId, webhookId)),
    view: (row) => found(sql.view.get(row)),
    redeliver: (row, at) => void sql.again.run(at, row),
    missed: (span) => found(sql.lost.all(span)),
    insertTest: (event) => void sql.insertEvent.run(event),
    insertTestDelivery(id, webhookId, at) {
      return found(Number(sql.insertDelivery.run({ id, webhookId, at }).lastInsertRowid));
    },
    recountDue: (webhookId) => void sql.recountDue.run(webhookId),
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
