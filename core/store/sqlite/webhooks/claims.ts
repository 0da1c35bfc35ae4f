/** The claim of deliveries in SQLite. Its rules: core/store/operations/delivery/claims.ts. */
import { must } from '../../../../proto/common/must.ts';
import type { ClaimStatements, PendingDelivery } from '../../operations/delivery/claims.ts';
import { frequentQueries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { dayCounter } from './days.ts';
import { dueRecount, NEXT_DUE, SUBSCRIPTION_STATE } from './due.ts';

export function claimStatements(tx: Tx): ClaimStatements {
  return {
    ...takeStatements(tx),
    ...servedStatements(tx),
    ...waitStatements(tx),
    ...lossStatements(tx),
  };
}

/**
 * Index webhooks_due. Webhooks at their cap are excluded here, because reading their backlog would
 * be in vain. In flight are some 64 rows per sender.
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
  SELECT webhook_id AS webhookId, deliveries.id AS id, event_id AS eventId, type, tries, generation,
    claim_seq AS claimSeq,
    (SELECT MAX(n) FROM attempts WHERE delivery_id = deliveries.id) AS lastAttempt
  FROM deliveries INDEXED BY deliveries_due JOIN events ON events.id = deliveries.event_id
  WHERE webhook_id = ? AND state = 'pending' AND due <= ?
  ORDER BY due LIMIT ?`;

type Pending = PendingDelivery & { webhookId: string };
type Secret = { webhookId: string; seq: number; sealed: Uint8Array };

function takeStatements(tx: Tx) {
  const { rows, value } = frequentQueries(tx);
  const pendingOf = rows<[string, number, number], Pending>(PENDING);
  const take = value<[number, number, string, string, number], Uint8Array>(`
    UPDATE deliveries
    SET state = 'in_flight', due = NULL, claim_seq = ?, lease_until = ?, sender_id = ?,
      instance_id = ?
    WHERE id = ?
    RETURNING (SELECT body FROM events WHERE events.id = event_id)`);
  const start = tx.db.prepare<[number, number, string, string, number, number, string]>(`
    INSERT INTO attempts (delivery_id, n, trigger, endpoint, started_at, signed_at, signed_by)
    VALUES (?, ?, ?, ?, ?, ?, ?)`);
  return {
    due: statements(tx).rows(DUE),
    pending: (wanted, at) =>
      found(wanted.flatMap(({ webhookId, max }) => pendingOf(webhookId, at, max))),
    take(all, { leaseUntil, senderId, instanceId, at, signedAtS }) {
      const taken = all.map(({ deliveryId, claimSeq, n, trigger, endpoint, signedBy }) => {
        const body = must(take(claimSeq, leaseUntil, senderId, instanceId, deliveryId), 'event');
        const by = signedBy.join(' ');
        const added = start.run(deliveryId, n, trigger, endpoint, at, signedAtS, by);
        return { deliveryId, attemptId: Number(added.lastInsertRowid), body };
      });
      return found(taken);
    },
  } satisfies Partial<ClaimStatements>;
}

function servedStatements(tx: Tx) {
  const { rows, write } = frequentQueries(tx);
  const secretsOf = rows<[string, number], Secret>(`
    SELECT webhook_id AS webhookId, seq, sealed FROM webhook_secrets
    WHERE webhook_id = ? AND (expires_at IS NULL OR expires_at > ?)
    ORDER BY seq DESC`);
  // Index webhooks_served.
  const setServed = write(`
    UPDATE webhooks
    SET paced_until = ?, last_served = (SELECT MAX(last_served) + 1 FROM webhooks),
      next_due = ${NEXT_DUE}
    WHERE id = ?`);
  return {
    setServed: (webhookId, pacedUntil) => setServed(pacedUntil, webhookId),
    secrets: (webhookIds, at) => found(webhookIds.flatMap((id) => secretsOf(id, at))),
  } satisfies Partial<ClaimStatements>;
}

function waitStatements(tx: Tx) {
  const { values, write } = statements(tx);
  // Index webhooks_due twice, then deliveries_leased.
  const nextDue = frequentQueries(tx).value<[object], number | null>(`
    SELECT MIN(at) FROM (
      SELECT MIN(next_due) AS at FROM webhooks INDEXED BY webhooks_due
      WHERE next_due > @at AND status <> 'deleted'
      UNION ALL
      SELECT MIN(MAX(not_before, paced_until - @slackMs)) FROM webhooks INDEXED BY webhooks_due
      WHERE next_due <= @at AND status <> 'deleted'
        AND MAX(not_before, paced_until - @slackMs) > @at
      UNION ALL
      SELECT MIN(lease_until) FROM deliveries INDEXED BY deliveries_leased
      WHERE state = 'in_flight')`);
  return {
    nextDue: (wanted) => found(nextDue(wanted) ?? null),
    // Index deliveries_gone.
    gone: values(`
      SELECT DISTINCT webhook_id FROM deliveries INDEXED BY deliveries_gone
      WHERE state = 'cancelled' AND lease_until IS NOT NULL AND sender_id = @senderId
        AND instance_id = @instanceId AND lease_until > @at`),
    setInformed: write(`
      UPDATE deliveries SET lease_until = NULL
      WHERE state = 'cancelled' AND lease_until IS NOT NULL AND sender_id = ?`),
  } satisfies Partial<ClaimStatements>;
}

function lossStatements(tx: Tx) {
  const { rows, write } = statements(tx);
  const interrupt = write(`
    UPDATE attempts SET outcome = 'interrupted', ended_at = ?
    WHERE delivery_id = ? AND ended_at IS NULL`);
  return {
    // Index deliveries_leased; in flight are some 64 rows per sender.
    lost: rows(`
      SELECT deliveries.id AS id, webhook_id AS webhookId, tries, interrupted, ${SUBSCRIPTION_STATE}
      FROM deliveries INDEXED BY deliveries_leased
        JOIN events ON events.id = deliveries.event_id
        JOIN webhooks ON webhooks.id = deliveries.webhook_id
      WHERE state = 'in_flight'
        AND (lease_until <= @at OR (sender_id = @senderId AND instance_id < @instanceId))`),
    interruptAttempt: (deliveryId, at) => interrupt(at, deliveryId),
    setState: write(`
      UPDATE deliveries
      SET state = @state, reason = @reason, due = @due, tries = @tries, interrupted = @interrupted,
        lease_until = NULL, done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at END
      WHERE id = @id`),
    recountDue: dueRecount(tx),
    countDay: dayCounter(tx),
  } satisfies Partial<ClaimStatements>;
}
