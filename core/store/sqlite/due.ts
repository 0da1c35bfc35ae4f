/**
 * Keeps `webhooks.next_due`: the claim looks at it alone, so a backlog at one endpoint costs the
 * others nothing.
 */

/** To run whenever a pending delivery of the webhook comes, goes or moves. Index deliveries_due. */
export const RECOUNT_DUE = `
  UPDATE webhooks
  SET next_due = (
    SELECT MIN(due) FROM deliveries WHERE webhook_id = webhooks.id AND state = 'pending')
  WHERE id = ?`;
