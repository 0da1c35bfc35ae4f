/**
 * The claim of deliveries in SQLite. pending -> (claim) -> in_flight -> delivered | pending again |
 * exhausted; see attempts.ts for what ends an attempt. The claim is the lock: any number of senders
 * may ask side by side.
 * An attempt's row is on disk before its request leaves, so that none is ever unaccounted for.
 */

import { BURST_MS, capOf, pacedAfter, tokensOf } from '../../../delivery/rate.ts';
import { afterInterruption, type Standing, TEST_TYPE } from '../../../delivery/transitions.ts';
import type { Claimed, ClaimedRow, ClaimWanted, DeliveryOps } from '../../types/deliveries.ts';
import type { Tx } from '../engine/transaction.ts';
import { reportOps } from './attempts.ts';
import { dueRecount, NEXT_DUE, STANDING } from './due.ts';

type Due = {
  id: string;
  projectId: string;
  endpoint: string;
  cap: number;
  breakerMs: number;
  pacedUntil: number;
  inFlight: number;
  projectInFlight: number;
};
type Pending = {
  id: number;
  eventId: string;
  type: string;
  body: Uint8Array;
  tries: number;
  generation: number;
  claimSeq: number;
  lastAttempt: number | null;
};
type Lost = Standing & { id: number; webhookId: string; tries: number; interrupted: number };

export function deliveryOps(tx: Tx): DeliveryOps {
  const sql = { ...prepareClaims(tx), ...prepareWaits(tx) };
  const release = releaser(tx);

  /** Takes up to `free` due deliveries of one webhook. */
  function claimOf(webhook: Due, free: number, wanted: ClaimWanted): ClaimedRow[] {
    const { at, leaseUntil, senderId, instanceId, ratePerS } = wanted;
    const { id: webhookId, endpoint } = webhook;
    const claims = sql.pending.all(webhookId, at, free).map((row) => {
      const { id: deliveryId, eventId, body, claimSeq: lastSeq, lastAttempt } = row;
      const n = (lastAttempt ?? 0) + 1;
      const claimSeq = lastSeq + 1;
      sql.take.run(claimSeq, leaseUntil, senderId, instanceId, deliveryId);
      const started = sql.startAttempt.run(deliveryId, n, triggerOf(row, n), endpoint, at);
      const attemptId = Number(started.lastInsertRowid);
      return { deliveryId, claimSeq, attemptId, n, webhookId, endpoint, eventId, body };
    });
    sql.served.run(
      pacedAfter(webhook.pacedUntil, at, { count: claims.length, ratePerS }),
      webhookId,
    );
    return claims;
  }

  /** Takes what is due, turn by turn, within the limits of each webhook and of its project. */
  function claimAll(wanted: ClaimWanted): ClaimedRow[] {
    const { at, max, perProjectMax, ratePerS } = wanted;
    const claims: ClaimedRow[] = [];
    const ofProject = new Map<string, number>();
    for (const webhook of sql.due.all({ at, perProjectMax, slackMs: slackMs(ratePerS) })) {
      const { projectId, projectInFlight, inFlight, pacedUntil } = webhook;
      const taken = ofProject.get(projectId) ?? 0;
      const free = Math.min(
        capOf(webhook) - inFlight,
        tokensOf(pacedUntil, at, ratePerS),
        perProjectMax - projectInFlight - taken,
        max - claims.length,
      );
      if (free <= 0) continue;
      const some = claimOf(webhook, free, wanted);
      ofProject.set(projectId, taken + some.length);
      claims.push(...some);
    }
    return claims;
  }

  function secretsOf(claims: readonly ClaimedRow[], at: number) {
    const ids = [...new Set(claims.map(({ webhookId }) => webhookId))];
    return Object.fromEntries(ids.map((id) => [id, sql.secrets.all(id, at)]));
  }

  /** Webhooks that were deleted under this sender's attempts. Each is told once. */
  function goneOf({ senderId, instanceId, at }: ClaimWanted): string[] {
    const gone = sql.gone.all(senderId, instanceId, at);
    if (gone.length > 0) sql.told.run(senderId);
    return gone;
  }

  function claimDeliveries(wanted: ClaimWanted): Claimed {
    release(wanted);
    const claims = wanted.max > 0 ? claimAll(wanted) : [];
    if (claims.length > 0) tx.crashPoint('claim-deliveries');
    const { at, ratePerS } = wanted;
    const nextDue = sql.nextDue.get({ at, slackMs: slackMs(ratePerS) }) ?? null;
    return { claims, secrets: secretsOf(claims, at), nextDue, gone: goneOf(wanted) };
  }

  const { record, ...beats } = reportOps(tx);
  return {
    ...beats,
    claimDeliveries,
    reportAttempts({ next, ...report }) {
      return { ...record(report), claimed: next && claimDeliveries(next) };
    },
  };
}

/** In milliseconds: how far a webhook's rate may run ahead with one delivery more to send. */
function slackMs(ratePerS: number): number {
  return BURST_MS - Math.ceil(1_000 / ratePerS);
}

function triggerOf({ type, generation, tries }: Pending, n: number): 'event' | 'manual' | 'retry' {
  if (type === TEST_TYPE || (generation > 0 && tries === 0)) return 'manual';
  return n === 1 ? 'event' : 'retry';
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
    due: db.prepare<[object], Due>(DUE),
    pending: db.prepare<[string, number, number], Pending>(PENDING),
    take: db.prepare<[number, number, string, string, number]>(`
      UPDATE deliveries
      SET state = 'in_flight', due = NULL, claim_seq = ?, lease_until = ?, sender_id = ?,
        instance_id = ?
      WHERE id = ?`),
    startAttempt: db.prepare<[number, number, string, string, number]>(`
      INSERT INTO attempts (delivery_id, n, trigger, endpoint, started_at)
      VALUES (?, ?, ?, ?, ?)`),
    // Index webhooks_served.
    served: db.prepare<[number, string]>(`
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
    told: db.prepare<[string]>(`
      UPDATE deliveries SET lease_until = NULL
      WHERE state = 'cancelled' AND lease_until IS NOT NULL AND sender_id = ?`),
  };
}

/**
 * Gives back what a lapsed lease or an earlier instance of the same sender held: due at once, the
 * attempt interrupted.
 */
function releaser(tx: Tx): (wanted: ClaimWanted) => void {
  const { db } = tx;
  // Index deliveries_leased; what is in flight is some 64 rows per sender.
  const lost = db.prepare<[object], Lost>(`
    SELECT deliveries.id AS id, webhook_id AS webhookId, tries, interrupted, ${STANDING}
    FROM deliveries INDEXED BY deliveries_leased
      JOIN events ON events.id = deliveries.event_id
      JOIN webhooks ON webhooks.id = deliveries.webhook_id
    WHERE state = 'in_flight'
      AND (lease_until <= @at OR (sender_id = @senderId AND instance_id < @instanceId))`);
  const move = db.prepare<[object]>(`
    UPDATE deliveries
    SET state = @state, reason = @reason, due = @due, tries = @tries, interrupted = @interrupted,
      lease_until = NULL, done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at END
    WHERE id = @id`);
  const interruptAttempt = db.prepare<[number, number]>(`
    UPDATE attempts SET outcome = 'interrupted', ended_at = ?
    WHERE delivery_id = ? AND ended_at IS NULL`);
  const recountDue = dueRecount(tx);

  return ({ at, senderId, instanceId, jitter }) => {
    for (const row of lost.all({ at, senderId, instanceId })) {
      const { id, webhookId, interrupted } = row;
      interruptAttempt.run(at, id);
      const next = afterInterruption({ ...row, interrupted: interrupted + 1 }, { at, jitter });
      move.run({ id, at, ...next });
      recountDue.run(webhookId);
    }
  };
}
