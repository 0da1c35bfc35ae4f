/**
 * Keeps `webhooks.next_due`: the claim looks at it alone, so a backlog at one endpoint costs the
 * others nothing. And what a delivery that waits again has to know of its webhook.
 */

import { preparedOnce, type Tx } from '../engine/transaction.ts';

/** Where `webhooks` is updated: the first due of what waits. Index deliveries_due. */
export const NEXT_DUE = `(
  SELECT MIN(due) FROM deliveries WHERE webhook_id = webhooks.id AND state = 'pending')`;

/** To run by webhook after a pending delivery was added, removed or moved. */
export const dueRecount = preparedOnce(({ db }: Tx) =>
  db.prepare<[string]>(`UPDATE webhooks SET next_due = ${NEXT_DUE} WHERE id = ?`),
);

/** Whether the project has that webhook. */
export const webhookFinder = preparedOnce(({ db }: Tx) =>
  db.prepare<[string, string], object>(
    `SELECT 1 FROM webhooks WHERE id = ? AND project_id = ? AND status <> 'deleted'`,
  ),
);

/** The columns of SubscriptionState, where deliveries, events and webhooks are joined. */
export const SUBSCRIPTION_STATE = `
  webhooks.status AS status,
  EXISTS (SELECT 1 FROM json_each(event_types) WHERE value = events.type) AS isSubscribed,
  generation > 0 AS isRedelivery, is_test AS isTest`;
