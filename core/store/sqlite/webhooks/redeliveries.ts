/** Redeliveries in SQLite. Their rules: core/store/operations/delivery/redeliveries.ts. */
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { RedeliveryStatements } from '../../operations/delivery/redeliveries.ts';
import { statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { DELIVERY_BY_ROW } from './delivery-list.ts';
import { dueRecount, webhookFinder } from './due.ts';

export function redeliveryStatements(tx: Tx): RedeliveryStatements {
  const { row, values, write } = statements(tx);
  const hasWebhook = webhookFinder(tx);
  const redeliver = write(`
    UPDATE deliveries
    SET state = 'pending', reason = NULL, due = ?, tries = 0, interrupted = 0, done_at = NULL,
      lease_until = NULL, generation = generation + 1
    WHERE id = ?`);
  const insertDelivery = tx.db.prepare<[object]>(`
    INSERT INTO deliveries (event_id, webhook_id, is_test, state, due, created_at)
    VALUES (@id, @webhookId, 1, 'pending', @at, @at)`);
  return {
    hasWebhook: (id, projectId) => found(hasWebhook(id, projectId)),
    // The unique index of (event_id, webhook_id).
    find: row('SELECT id AS row, state FROM deliveries WHERE event_id = ? AND webhook_id = ?'),
    view: row(DELIVERY_BY_ROW),
    redeliver: (row, at) => redeliver(at, row),
    // Index deliveries_by_state, once for each of the two: a sort of both would read them whole.
    missed: values(`
      SELECT id FROM (
        SELECT * FROM (${missedIn('skipped')})
        UNION ALL SELECT * FROM (${missedIn('exhausted')}))
      ORDER BY id LIMIT @max`),
    insertTest: write(`
      INSERT INTO events (id, project_id, type, resource_id, body, created_at)
      VALUES (@id, @projectId, @type, @resourceId, @body, @at)`),
    insertTestDelivery: (id, webhookId, at) =>
      found(Number(insertDelivery.run({ id, webhookId, at }).lastInsertRowid)),
    recountDue: dueRecount(tx),
  };
}

function missedIn(state: 'skipped' | 'exhausted'): string {
  return `
    SELECT deliveries.id AS id
    FROM deliveries INDEXED BY deliveries_by_state JOIN events ON events.id = event_id
    WHERE webhook_id = @webhookId AND state = '${state}' AND state <> 'in_flight'
      AND deliveries.id > @after AND deliveries.created_at BETWEEN @since AND @until
      AND type <> '${TEST_TYPE}'
    ORDER BY deliveries.id LIMIT @max`;
}
