/**
 * Updates `webhooks.next_due`, the only column that the claim reads to find webhooks: a backlog of
 * one endpoint costs the others nothing. Also the webhook's state for a delivery that is retried.
 */
import { frequentQueries } from '../engine/statements.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';

/**
 * In an update of `webhooks`: the earliest due time of its pending deliveries. Index
 * deliveries_due.
 */
export const NEXT_DUE = `(
  SELECT MIN(due) FROM deliveries WHERE webhook_id = webhooks.id AND state = 'pending')`;

/** To run after a pending delivery of the webhook was added, removed or moved. */
export const dueRecount = preparedOnce((tx: Tx) =>
  frequentQueries(tx).write<[string]>(`UPDATE webhooks SET next_due = ${NEXT_DUE} WHERE id = ?`),
);

/** Whether the project has that webhook. */
export const webhookFinder = preparedOnce((tx: Tx) =>
  frequentQueries(tx).exists<[string, string]>(
    `SELECT 1 FROM webhooks WHERE id = ? AND project_id = ? AND status <> 'deleted'`,
  ),
);

/** The columns of SubscriptionState, where deliveries, events and webhooks are joined. */
export const SUBSCRIPTION_STATE = `
  webhooks.status AS status,
  EXISTS (SELECT 1 FROM json_each(event_types) WHERE value = events.type) AS isSubscribed,
  generation > 0 AS isRedelivery, is_test AS isTest`;
