/**
 * The claim of deliveries in SQLite. pending -> (claim) -> in_flight -> delivered | pending again |
 * exhausted; see attempts.ts for what ends an attempt. The claim is the lock: any number of senders
 * may ask side by side.
 * An attempt's row is on disk before its request leaves, so that none is ever unaccounted for.
 */
import { delayMs } from '../../delivery/schedule.ts';
import type { ClaimedRow, ClaimWanted, DeliveryOps } from '../types/deliveries.ts';
import { reportOps } from './attempts.ts';
import { RECOUNT_DUE } from './due.ts';
import type { Tx } from './tx.ts';

/**
 * Ours: a delivery that ends its sender this often counts as failed once, so that it drains like
 * any other.
 */
const INTERRUPTED_MAX = 5;

type Due = { id: string; endpoint: string; inFlight: number };
type Pending = {
  id: number;
  eventId: string;
  body: Uint8Array;
  tries: number;
  generation: number;
  claimSeq: number;
};
type Lost = { id: number; webhookId: string; tries: number; interrupted: number };

export function deliveryOps(tx: Tx): DeliveryOps {
  const sql = prepareClaims(tx);
  const release = releaser(tx);
  const nextDue = tx.db
    .prepare<[number], number | null>(
      `SELECT MIN(next_due) FROM webhooks WHERE next_due > ? AND status = 'enabled'`,
    )
    .pluck();

  /** Takes up to `free` due deliveries of one webhook. */
  function claimOf(webhook: Due, free: number, wanted: ClaimWanted): ClaimedRow[] {
    const { at, leaseUntil, senderId, instanceId } = wanted;
    const claims = sql.pending.all(webhook.id, at, free).map((row) => {
      const { id: deliveryId, eventId, body } = row;
      const n = (sql.lastAttempt.get(deliveryId) ?? 0) + 1;
      const trigger =
        n === 1 ? 'event' : row.generation > 0 && row.tries === 0 ? 'manual' : 'retry';
      const claimSeq = row.claimSeq + 1;
      sql.take.run({ deliveryId, claimSeq, leaseUntil, senderId, instanceId });
      const started = { deliveryId, n, trigger, endpoint: webhook.endpoint, at };
      const attemptId = Number(sql.startAttempt.run(started).lastInsertRowid);
      const { id: webhookId, endpoint } = webhook;
      return { deliveryId, claimSeq, attemptId, n, webhookId, endpoint, eventId, body };
    });
    sql.served.run(webhook.id);
    sql.recountDue.run(webhook.id);
    return claims;
  }

  return {
    ...reportOps(tx),

    claimDeliveries(wanted) {
      release(wanted);
      const claims: ClaimedRow[] = [];
      const secrets: Record<string, { seq: number; sealed: Uint8Array }[]> = {};
      for (const webhook of sql.due.all(wanted.at, wanted.at, wanted.perWebhookMax)) {
        const free = Math.min(wanted.perWebhookMax - webhook.inFlight, wanted.max - claims.length);
        if (free <= 0) break;
        claims.push(...claimOf(webhook, free, wanted));
        secrets[webhook.id] = sql.secrets.all(webhook.id, wanted.at);
      }
      if (claims.length > 0) tx.crashPoint('claim-deliveries');
      return { claims, secrets, nextDue: nextDue.get(wanted.at) ?? null };
    },
  };
}

function prepareClaims({ db }: Tx) {
  return {
    // Index webhooks_due. One that is at its cap is left out here, or its backlog would be looked
    // through in vain.
    due: db.prepare<[number, number, number], Due>(`
      SELECT id, endpoint, (${IN_FLIGHT}) AS inFlight FROM webhooks
      WHERE status = 'enabled' AND next_due <= ? AND not_before <= ? AND (${IN_FLIGHT}) < ?
      ORDER BY last_served, id LIMIT 64`),
    // Index deliveries_due.
    pending: db.prepare<[string, number, number], Pending>(`
      SELECT deliveries.id AS id, event_id AS eventId, body, tries, generation,
        claim_seq AS claimSeq
      FROM deliveries JOIN events ON events.id = deliveries.event_id
      WHERE webhook_id = ? AND state = 'pending' AND due <= ?
      ORDER BY due LIMIT ?`),
    take: db.prepare<[object]>(`
      UPDATE deliveries
      SET state = 'in_flight', due = NULL, claim_seq = @claimSeq, lease_until = @leaseUntil,
        sender_id = @senderId, instance_id = @instanceId
      WHERE id = @deliveryId`),
    lastAttempt: db
      .prepare<[number], number | null>('SELECT MAX(n) FROM attempts WHERE delivery_id = ?')
      .pluck(),
    startAttempt: db.prepare<[object]>(`
      INSERT INTO attempts (delivery_id, n, trigger, endpoint, started_at)
      VALUES (@deliveryId, @n, @trigger, @endpoint, @at)`),
    served: db.prepare<[string]>(`
      UPDATE webhooks SET last_served = (SELECT MAX(last_served) + 1 FROM webhooks) WHERE id = ?`),
    recountDue: db.prepare<[string]>(RECOUNT_DUE),
    secrets: db.prepare<[string, number], { seq: number; sealed: Uint8Array }>(`
      SELECT seq, sealed FROM webhook_secrets
      WHERE webhook_id = ? AND (expires_at IS NULL OR expires_at > ?)
      ORDER BY seq DESC`),
  };
}

const IN_FLIGHT = `
  SELECT COUNT(*) FROM deliveries
  WHERE webhook_id = webhooks.id AND state = 'in_flight'`;

/**
 * Gives back what a lapsed lease or an earlier instance of the same sender held: due at once, the
 * attempt interrupted.
 */
function releaser({ db }: Tx): (wanted: ClaimWanted) => void {
  // Indexes deliveries_leased; what is in flight is some 64 rows per sender.
  const lost = db.prepare<[object], Lost>(`
    SELECT id, webhook_id AS webhookId, tries, interrupted FROM deliveries
    WHERE state = 'in_flight'
      AND (lease_until <= @at OR (sender_id = @senderId AND instance_id < @instanceId))`);
  const again = db.prepare<[object]>(`
    UPDATE deliveries
    SET state = @state, reason = @reason, due = @due, done_at = @doneAt, tries = @tries,
      interrupted = @interrupted, lease_until = NULL
    WHERE id = @id`);
  const interruptAttempt = db.prepare<[number, number]>(`
    UPDATE attempts SET outcome = 'interrupted', ended_at = ?
    WHERE delivery_id = ? AND ended_at IS NULL`);
  const recountDue = db.prepare<[string]>(RECOUNT_DUE);

  return (wanted) => {
    const { at, senderId, instanceId } = wanted;
    for (const { id, webhookId, tries, interrupted } of lost.all({ at, senderId, instanceId })) {
      interruptAttempt.run(at, id);
      again.run({ id, ...afterInterruption(tries, interrupted + 1, wanted) });
      recountDue.run(webhookId);
    }
  };
}

function afterInterruption(tries: number, interrupted: number, { at, jitter }: ClaimWanted) {
  const pending = { state: 'pending', reason: null, doneAt: null };
  if (interrupted < INTERRUPTED_MAX) return { ...pending, due: at, tries, interrupted };
  const failed = { outcome: 'interrupted', status: 0, retryAfterS: null };
  const delay = delayMs(tries + 1, failed, jitter);
  const after = { tries: tries + 1, interrupted: 0 };
  if (delay !== null) return { ...pending, ...after, due: at + delay };
  return { ...after, state: 'exhausted', reason: 'interrupted', due: null, doneAt: at };
}
