/**
 * Updates `webhooks.next_due`, the only column that the claim reads to find webhooks: a backlog of
 * one endpoint costs the others nothing. Also the webhook's state for a delivery that is retried.
 * The due time is counted after the webhook's row is locked: a statement does not see deliveries
 * that are committed while it waits for the row.
 */
import { statements } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';

/**
 * In an update of `webhooks`: the earliest due time of its pending deliveries. Index
 * deliveries_due.
 */
export const NEXT_DUE = `(
  SELECT MIN(due) FROM deliveries WHERE webhook_id = webhooks.id AND state = 'pending')`;

/** To run after a pending delivery of the webhook was added, removed or moved. */
export function dueRecount(tx: Tx) {
  return statements(tx).write<[string]>(`UPDATE webhooks SET next_due = ${NEXT_DUE} WHERE id = ?`);
}

/** Whether the project has that webhook. */
export function webhookFinder(tx: Tx) {
  return statements(tx).exists<[string, string]>(
    `SELECT 1 FROM webhooks WHERE id = ? AND project_id = ? AND status <> 'deleted'`,
  );
}

/** The columns of SubscriptionState, where deliveries, events and webhooks are joined. */
export const SUBSCRIPTION_STATE = `
  webhooks.status AS status,
  jsonb_exists(event_types::JSONB, events.type)::INTEGER AS "isSubscribed",
  (generation > 0)::INTEGER AS "isRedelivery", is_test AS "isTest"`;
