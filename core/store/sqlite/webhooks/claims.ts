/** The claim of deliveries in SQLite. Its rules: core/store/operations/delivery/claims.ts. */
import type {
  ClaimStatements,
  DueWebhook,
  LostDelivery,
  PendingDelivery,
} from '../../operations/delivery/claims.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { dueRecount, NEXT_DUE, SUBSCRIPTION_STATE } from './due.ts';

export function claimStatements(tx: Tx): ClaimStatements {
  const sql = { ...prepareClaims(tx), ...prepareWaits(tx), ...prepareLosses(tx) };
  const recountDue = dueRecount(tx);
  return {
    due: (wanted) => found(sql.due.all(wanted)),
    pending: (webhookId, at, max) => found(sql.pending.all(webhookId, at, max)),
    take(deliveryId, claimSeq, { leaseUntil, senderId, instanceId }) {
      sql.take.run(claimSeq, leaseUntil, senderId, instanceId, deliveryId);
    },
    startAttempt({ deliveryId, n, trigger, endpoint, at }) {
      const { lastInsertRowid } = sql.startAttempt.run(deliveryId, n, trigger, endpoint, at);
      return found(Number(lastInsertRowid));
    },
    setServed: (webhookId, pacedUntil) => void sql.setServed.run(pacedUntil, webhookId),
    secrets: (webhookId, at) => found(sql.secrets.all(webhookId, at)),
    nextDue: (wanted) => found(sql.nextDue.get(wanted) ?? null),
    gone: ({ senderId, instanceId, at }) => found(sql.gone.all(senderId, instanceId, at)),
    setInformed: (senderId) => void sql.setInformed.run(senderId),
    lost: ({ at, senderId, instanceId }) => found(sql.lost.all({ at, senderId, instanceId })),
    interruptAttempt: (deliveryId, at) => void sql.interruptAttempt.run(at, deliveryId),
    setState: (next) => void sql.setState.run(next),
    recountDue: (webhookId) => void recountDue.run(webhookId),
  };
}

/**
 * Index webhooks_due. One that is at its cap is left out here, or its backlog would be looked
 * through in vain. What is in flight is some 64 rows per sender.
 */
export const DUE = `
  WITH busy AS MATERIALIZED (
    SELECT webhook_id, COUNT(*) AS n FROM deliveries INDEXED BY deliveries_leased
    WHERE state = 'in_flight' GROUP BY webhook_id),
  busy_projects AS MATERIALIZED (
    SELECT project_id, SUM(n) AS n FROM busy CROSS JOIN webhooks ON webhooks.id = busy.webhook_id
    GROUP BY project_id)
  SELECT webhooks.id AS id, webhooks.project_id AS projectId, endpoint, cap,
    breaker_ms AS breakerMs, paced_until AS pacedUntil, COALESCE(busy.n, 0) AS inFlight,
    COALESCE(busy_projects.n, 0) AS projectInFlight
  FROM webhooks INDEXED BY webhooks_due
    LEFT JOIN busy ON busy.webhook_id = webhooks.id
    LEFT JOIN busy_projects ON busy_projects.project_id = webhooks.project_id
  WHERE next_due <= @at AND status <> 'deleted' AND not_before <= @at
    AND paced_until <= @at + @slackMs
    AND COALESCE(busy.n, 0) < CASE WHEN breaker_ms > 0 THEN 1 ELSE cap END
    AND COALESCE(busy_projects.n, 0) < @perProjectMax
  ORDER BY last_served, webhooks.id LIMIT 64`;

/** Index deliveries_due. */
export const PENDING = `
  SELECT deliveries.id AS id, event_id AS eventId, type, body, tries, generation,
    claim_seq AS claimSeq,
    (SELECT MAX(n) FROM attempts WHERE delivery_id = deliveries.id) AS lastAttempt
  FROM deliveries INDEXED BY deliveries_due JOIN events ON events.id = deliveries.event_id
  WHERE webhook_id = ? AND state = 'pending' AND due <= ?
  ORDER BY due LIMIT ?`;

function prepareClaims({ db }: Tx) {
  return {
    due: db.prepare<[object], DueWebhook>(DUE),
    pending: db.prepare<[string, number, number], PendingDelivery>(PENDING),
    take: db.prepare<[number, number, string, string, number]>(`
      UPDATE deliveries
      SET state = 'in_flight', due = NULL, claim_seq = ?, lease_until = ?, sender_id = ?,
        instance_id = ?
      WHERE id = ?`),
    startAttempt: db.prepare<[number, number, string, string, number]>(`
      INSERT INTO attempts (delivery_id, n, trigger, endpoint, started_at)
      VALUES (?, ?, ?, ?, ?)`),
    // Index webhooks_served.
    setServed: db.prepare<[number, string]>(`
      UPDATE webhooks
      SET paced_until = ?, last_served = (SELECT MAX(last_served) + 1 FROM webhooks),
        next_due = ${NEXT_DUE}
      WHERE id = ?`),
    secrets: db.prepare<[string, number], { seq: number; sealed: Uint8Array }>(`
      SELECT seq, sealed FROM webhook_secrets
      WHERE webhook_id = ? AND (expires_at IS NULL OR expires_at > ?)
      ORDER BY seq DESC`),
  };
}

function prepareWaits({ db }: Tx) {
  return {
    // Index webhooks_due twice, then deliveries_leased.
    nextDue: db
      .prepare<[object], number | null>(`
        SELECT MIN(at) FROM (
          SELECT MIN(next_due) AS at FROM webhooks INDEXED BY webhooks_due
          WHERE next_due > @at AND status <> 'deleted'
          UNION ALL
          SELECT MIN(MAX(not_before, paced_until - @slackMs)) FROM webhooks INDEXED BY webhooks_due
          WHERE next_due <= @at AND status <> 'deleted'
            AND MAX(not_before, paced_until - @slackMs) > @at
          UNION ALL
          SELECT MIN(lease_until) FROM deliveries INDEXED BY deliveries_leased
          WHERE state = 'in_flight')`)
      .pluck(),
    // Index deliveries_gone.
    gone: db
      .prepare<[string, string, number], string>(`
        SELECT DISTINCT webhook_id FROM deliveries INDEXED BY deliveries_gone
        WHERE state = 'cancelled' AND lease_until IS NOT NULL AND sender_id = ?
          AND instance_id = ? AND lease_until > ?`)
      .pluck(),
    setInformed: db.prepare<[string]>(`
      UPDATE deliveries SET lease_until = NULL
      WHERE state = 'cancelled' AND lease_until IS NOT NULL AND sender_id = ?`),
  };
}

function prepareLosses({ db }: Tx) {
  return {
    // Index deliveries_leased; what is in flight is some 64 rows per sender.
    lost: db.prepare<[object], LostDelivery>(`
      SELECT deliveries.id AS id, webhook_id AS webhookId, tries, interrupted, ${SUBSCRIPTION_STATE}
      FROM deliveries INDEXED BY deliveries_leased
        JOIN events ON events.id = deliveries.event_id
        JOIN webhooks ON webhooks.id = deliveries.webhook_id
      WHERE state = 'in_flight'
        AND (lease_until <= @at OR (sender_id = @senderId AND instance_id < @instanceId))`),
    setState: db.prepare<[object]>(`
      UPDATE deliveries
      SET state = @state, reason = @reason, due = @due, tries = @tries, interrupted = @interrupted,
        lease_until = NULL, done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at END
      WHERE id = @id`),
    interruptAttempt: db.prepare<[number, number]>(`
      UPDATE attempts SET outcome = 'interrupted', ended_at = ?
      WHERE delivery_id = ? AND ended_at IS NULL`),
  };
}
