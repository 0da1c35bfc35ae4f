/**
 * The claim of deliveries in PostgreSQL. Its rules: core/store/operations/delivery/claims.ts. One
 * claim runs at a time, because the limits of a project are over all its webhooks. Webhooks whose
 * rows another operation holds are left to the next claim, which that operation wakes.
 */
import type {
  ClaimStatements,
  DueWebhook,
  LostDelivery,
  PendingDelivery,
} from '../../operations/delivery/claims.ts';
import { made } from '../../operations/steps.ts';
import type { Sender } from '../../types/deliveries.ts';
import { LOCKS } from '../engine/locks.ts';
import { statements } from '../engine/statements.ts';
import { found, mapped } from '../engine/steps.ts';
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

/** Of a webhook beside `busy`. */
const FREE_OF_CAP = '(CASE WHEN breaker_ms > 0 THEN 1 ELSE cap END - COALESCE(busy.n, 0))';

/**
 * Index webhooks_due. Webhooks at their cap are excluded here, because reading their backlog would
 * be in vain. In flight are some 64 rows per sender. With what a claim may take of each: its first
 * deliveries by index deliveries_due, as many as are free of its cap, which is small, and its
 * secrets. A delivery is seen as it is behind its lock. Secrets and further deliveries are those of
 * the moment before: an operation that ends in it is not seen, and one attempt may be signed by a
 * secret that it removed.
 */
const DUE = `
  WITH busy AS MATERIALIZED (
    SELECT webhook_id, COUNT(*) AS n FROM deliveries
    WHERE state = 'in_flight' GROUP BY webhook_id),
  busy_projects AS MATERIALIZED (
    SELECT project_id, SUM(n)::BIGINT AS n FROM busy JOIN webhooks ON webhooks.id = busy.webhook_id
    GROUP BY project_id),
  ready AS MATERIALIZED (
    SELECT webhooks.id AS id, webhooks.project_id AS "projectId", endpoint, cap,
      breaker_ms AS "breakerMs", paced_until AS "pacedUntil", COALESCE(busy.n, 0) AS "inFlight",
      COALESCE(busy_projects.n, 0) AS "projectInFlight", last_served, ${FREE_OF_CAP} AS free
    FROM webhooks
      LEFT JOIN busy ON busy.webhook_id = webhooks.id
      LEFT JOIN busy_projects ON busy_projects.project_id = webhooks.project_id
    WHERE next_due IS NOT NULL AND next_due <= @at::BIGINT AND status <> 'deleted'
      AND not_before <= @at::BIGINT AND paced_until <= @at::BIGINT + @slackMs::BIGINT
      AND ${FREE_OF_CAP} > 0 AND COALESCE(busy_projects.n, 0) < @perProjectMax::BIGINT
    ORDER BY last_served, webhooks.id LIMIT 64 FOR NO KEY UPDATE OF webhooks SKIP LOCKED)
  SELECT ready.*,
    (SELECT json_agg(found) FROM (
      SELECT deliveries.id AS id, event_id AS "eventId",
        (SELECT type FROM events WHERE events.id = event_id) AS type, tries, generation,
        claim_seq AS "claimSeq",
        (SELECT MAX(n) FROM attempts WHERE delivery_id = deliveries.id) AS "lastAttempt"
      FROM deliveries
      WHERE webhook_id = ready.id AND state = 'pending' AND due <= @at::BIGINT
      ORDER BY due LIMIT LEAST(ready.free, @max::BIGINT,
        @perProjectMax::BIGINT - ready."projectInFlight")
      FOR UPDATE OF deliveries) AS found) AS pending,
    (SELECT json_agg(json_build_array(seq, encode(sealed, 'base64')) ORDER BY seq DESC)
      FROM webhook_secrets
      WHERE webhook_id = ready.id AND (expires_at IS NULL OR expires_at > @at::BIGINT)) AS secrets
  FROM ready ORDER BY last_served, id`;

/** Arrays of the same length: a delivery in each place. */
const TAKE = `
  WITH one AS (
    SELECT * FROM unnest(@deliveryIds::BIGINT[], @claimSeqs::BIGINT[], @numbers::BIGINT[],
      @triggers::TEXT[], @endpoints::TEXT[], @signedBy::TEXT[])
      AS one (delivery_id, claim_seq, n, trigger, endpoint, signed_by)),
  taken AS (
    UPDATE deliveries
    SET state = 'in_flight', due = NULL, claim_seq = one.claim_seq, lease_until = @leaseUntil,
      sender_id = @senderId, instance_id = @instanceId
    FROM one WHERE deliveries.id = one.delivery_id
    RETURNING deliveries.id, event_id),
  started AS (
    INSERT INTO attempts (delivery_id, n, trigger, endpoint, started_at, signed_at, signed_by)
    SELECT delivery_id, n, trigger, endpoint, @at::BIGINT, @signedAtS::BIGINT, signed_by FROM one
    RETURNING id, delivery_id)
  SELECT delivery_id AS "deliveryId", started.id AS "attemptId",
    (SELECT body FROM events WHERE events.id = taken.event_id) AS body
  FROM started JOIN taken ON taken.id = started.delivery_id`;

/** With the first of its due deliveries, and its secrets in base64, newest first. */
type DueRow = DueWebhook & {
  pending: PendingDelivery[] | null;
  secrets: [seq: number, sealed: string][] | null;
};

/** What the running operation has read of each due webhook. */
const KNOWN = {};

function takeStatements(tx: Tx) {
  const { rows } = statements(tx);
  const due = rows<[object], DueRow>(DUE);
  type Taken = { deliveryId: number; attemptId: number; body: Uint8Array };
  const take = rows<[object], Taken>(TAKE);
  const known = () => tx.memory(KNOWN, () => new Map<string, DueRow>());
  return {
    due(wanted) {
      return mapped(due(wanted), (found) => {
        for (const webhook of found) known().set(webhook.id, webhook);
        return found;
      });
    },
    pending: (wanted) =>
      found(
        wanted.flatMap(({ webhookId, max }) => {
          const first = known().get(webhookId)?.pending?.slice(0, max) ?? [];
          return first.map((delivery) => ({ ...delivery, webhookId }));
        }),
      ),
    secrets: (webhookIds) =>
      found(
        webhookIds.flatMap((webhookId) => {
          const live = known().get(webhookId)?.secrets ?? [];
          return live.map(([seq, sealed]) => {
            return { webhookId, seq, sealed: Buffer.from(sealed, 'base64') };
          });
        }),
      ),
    take(all, { at, signedAtS, leaseUntil, senderId, instanceId }) {
      return take({
        at,
        signedAtS,
        leaseUntil,
        senderId,
        instanceId,
        deliveryIds: all.map(({ deliveryId }) => deliveryId),
        claimSeqs: all.map(({ claimSeq }) => claimSeq),
        numbers: all.map(({ n }) => n),
        triggers: all.map(({ trigger }) => trigger),
        endpoints: all.map(({ endpoint }) => endpoint),
        signedBy: all.map(({ signedBy }) => signedBy.join(' ')),
      });
    },
  } satisfies Partial<ClaimStatements>;
}

function servedStatements(tx: Tx) {
  const { write } = statements(tx);
  const setServed = write<[number, string]>(`
    UPDATE webhooks
    SET paced_until = ?, last_served = nextval('webhooks_served'), next_due = ${NEXT_DUE}
    WHERE id = ?`);
  return {
    setServed: (webhookId, pacedUntil) => setServed(pacedUntil, webhookId),
  } satisfies Partial<ClaimStatements>;
}

function waitStatements(tx: Tx) {
  const { value, values, write } = statements(tx);
  const open = 'GREATEST(not_before, paced_until - @slackMs::BIGINT)';
  // Index webhooks_due twice, then deliveries_leased.
  const nextDue = value<[object], number | null>(`
      SELECT MIN(at) FROM (
        SELECT MIN(next_due) AS at FROM webhooks
        WHERE next_due > @at::BIGINT AND status <> 'deleted'
        UNION ALL
        SELECT MIN(${open}) FROM webhooks
        WHERE next_due <= @at::BIGINT AND status <> 'deleted' AND ${open} > @at::BIGINT
        UNION ALL
        SELECT MIN(lease_until) FROM deliveries WHERE state = 'in_flight') AS times`);
  return {
    nextDue: (wanted) => mapped(nextDue(wanted), (at) => at ?? null),
    // Index deliveries_gone.
    gone: values(`
      SELECT DISTINCT webhook_id FROM deliveries
      WHERE state = 'cancelled' AND lease_until IS NOT NULL AND sender_id = @senderId
        AND instance_id = @instanceId AND lease_until > @at`),
    setInformed: write(`
      UPDATE deliveries SET lease_until = NULL
      WHERE state = 'cancelled' AND lease_until IS NOT NULL AND sender_id = ?`),
  } satisfies Partial<ClaimStatements>;
}

function lossStatements(tx: Tx) {
  const { rows, values, write } = statements(tx);
  const lockClaims = write<[number]>('SELECT pg_advisory_xact_lock(?)');
  // Index deliveries_leased; in flight are some 64 rows per sender.
  const isLost = `state = 'in_flight'
    AND (lease_until <= @at OR (sender_id = @senderId AND instance_id < @instanceId))`;
  const lockWebhooks = values<[object], string>(`
    SELECT id FROM webhooks
    WHERE id IN (SELECT webhook_id FROM deliveries WHERE ${isLost})
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`);
  const lostOf = rows<[object], LostDelivery>(`
    SELECT deliveries.id AS id, webhook_id AS "webhookId", tries, interrupted,
      ${SUBSCRIPTION_STATE}
    FROM deliveries
      JOIN events ON events.id = deliveries.event_id
      JOIN webhooks ON webhooks.id = deliveries.webhook_id
    WHERE ${isLost} AND webhook_id = ANY (@webhookIds::TEXT[])
    ORDER BY deliveries.id FOR UPDATE OF deliveries`);
  const interrupt = write<[number, number]>(`
    UPDATE attempts SET outcome = 'interrupted', ended_at = ?
    WHERE delivery_id = ? AND ended_at IS NULL`);
  return {
    lost(wanted: Sender & { at: number }) {
      lockClaims(LOCKS.claims);
      const locked = lockWebhooks(wanted);
      return made(function* () {
        const webhookIds = yield* locked;
        return webhookIds.length > 0 ? yield* lostOf({ ...wanted, webhookIds }) : [];
      });
    },
    interruptAttempt: (deliveryId, at) => interrupt(at, deliveryId),
    setState: write(`
      UPDATE deliveries
      SET state = @state, reason = @reason, due = @due, tries = @tries, interrupted = @interrupted,
        lease_until = NULL,
        done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at::BIGINT END
      WHERE id = @id`),
    recountDue: dueRecount(tx),
    countDay: dayCounter(tx),
  } satisfies Partial<ClaimStatements>;
}
