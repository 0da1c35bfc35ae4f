/** Redeliveries in PostgreSQL. Their rules: core/store/operations/delivery/redeliveries.ts. */
import { TEST_TYPE } from '../../../delivery/transitions.ts';
import type { RedeliveryStatements } from '../../operations/delivery/redeliveries.ts';
import { statements } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';
import { DELIVERY_BY_ROW } from './delivery-list.ts';
import { dueRecount, webhookFinder } from './due.ts';
import { eventCounter, SEQ } from './events.ts';

export function redeliveryStatements(tx: Tx): RedeliveryStatements {
  const { row, values, returnedValue, write } = statements(tx);
  const nextPlace = eventCounter(tx);
  const redeliver = write<[number, number]>(`
    UPDATE deliveries
    SET state = 'pending', reason = NULL, due = ?, tries = 0, interrupted = 0, done_at = NULL,
      lease_until = NULL, generation = generation + 1
    WHERE id = ?`);
  const insertDelivery = returnedValue<[object], number>(`
    INSERT INTO deliveries (event_id, webhook_id, is_test, state, due, created_at)
    VALUES (@id, @webhookId, 1, 'pending', @at, @at)
    RETURNING id`);
  const insertTest = write<[object]>(`
    INSERT INTO events (seq, id, project_id, type, resource_id, body, created_at)
    VALUES (${SEQ}, @id, @projectId, @type, @resourceId, @body, @at)`);
  return {
    hasWebhook: webhookFinder(tx),
    // The unique index of (event_id, webhook_id).
    find: row(
      'SELECT id AS row, state FROM deliveries WHERE event_id = ? AND webhook_id = ? FOR UPDATE',
    ),
    view: row(DELIVERY_BY_ROW),
    redeliver: (row, at) => redeliver(at, row),
    // Index deliveries_by_state, once for each of the two: a sort of both would read them whole.
    missed: values(`
      SELECT id FROM (
        (${missedIn('skipped')}) UNION ALL (${missedIn('exhausted')})) AS missed
      ORDER BY id LIMIT @max`),
    insertTest: (event) => insertTest({ ...event, n: nextPlace() }),
    insertTestDelivery: (id, webhookId, at) => insertDelivery({ id, webhookId, at }),
    recountDue: dueRecount(tx),
  };
}

function missedIn(state: 'skipped' | 'exhausted'): string {
  return `
    SELECT deliveries.id AS id
    FROM deliveries JOIN events ON events.id = event_id
    WHERE webhook_id = @webhookId AND state = '${state}' AND state <> 'in_flight'
      AND deliveries.id > @after AND deliveries.created_at BETWEEN @since AND @until
      AND type <> '${TEST_TYPE}'
    ORDER BY deliveries.id LIMIT @max`;
}
