/** The ends of attempts in PostgreSQL. Their rules: core/store/operations/delivery/attempts.ts. */
import type { ReportStatements } from '../../operations/delivery/attempts.ts';
import type { Read } from '../../operations/steps.ts';
import { statements } from '../engine/statements.ts';
import type { Tx } from '../engine/transaction.ts';
import { dayCounter } from './days.ts';
import { NEXT_DUE, SUBSCRIPTION_STATE } from './due.ts';

const STREAK = `first_failure_at AS "firstFailureAt", last_attempt_at AS "lastAttemptAt",
  consecutive_failures AS "consecutiveFailures"`;
const PACE = 'cap, breaker_ms AS "breakerMs", not_before AS "notBefore"';

type Reported = ReturnType<ReportStatements['reported']> extends Read<(infer Row)[]> ? Row : never;

export function reportStatements(tx: Tx): ReportStatements {
  return {
    ...attemptStatements(tx),
    ...deliveryStatements(tx),
    ...streakStatements(tx),
    ...heartbeatStatements(tx),
  };
}

function attemptStatements(tx: Tx) {
  const { write } = statements(tx);
  // Arrays of the same length: an attempt in each place.
  const end = write<[object]>(`
    UPDATE attempts
    SET ended_at = @at, outcome = one.outcome, status = NULLIF(one.status, 0),
      latency_ms = one.latency_ms, error = NULLIF(one.error, ''),
      response = decode(one.response, 'hex')
    FROM unnest(@ids::BIGINT[], @outcomes::TEXT[], @statuses::BIGINT[], @latencies::BIGINT[],
      @errors::TEXT[], @responses::TEXT[])
      AS one (id, outcome, status, latency_ms, error, response)
    WHERE attempts.id = one.id`);
  return {
    endAttempts(ends, at) {
      end({
        at,
        ids: ends.map(({ attemptId }) => attemptId),
        outcomes: ends.map(({ outcome }) => outcome),
        statuses: ends.map(({ status }) => status),
        latencies: ends.map(({ latencyMs }) => latencyMs),
        errors: ends.map(({ error }) => error),
        responses: ends.map(({ response }) => Buffer.from(response).toString('hex')),
      });
    },
    removeAttempt: write('DELETE FROM attempts WHERE id = ?'),
  } satisfies Partial<ReportStatements>;
}

function deliveryStatements(tx: Tx) {
  const { rows, write } = statements(tx);
  const setStates = write<[object]>(`
    UPDATE deliveries
    SET state = one.state, reason = one.reason, due = one.due, tries = one.tries,
      lease_until = NULL, done_at = CASE one.state WHEN 'pending' THEN NULL ELSE @at::BIGINT END
    FROM json_to_recordset(@states::TEXT::JSON)
      AS one ("deliveryId" BIGINT, state TEXT, reason TEXT, due BIGINT, tries BIGINT)
    WHERE deliveries.id = one."deliveryId"`);
  const reported = rows<[object], Reported>(`
    SELECT attempts.id AS "attemptId", deliveries.id AS "deliveryId", ended_at AS "endedAt",
      outcome, webhook_id AS "webhookId", state, claim_seq AS "claimSeq", tries,
      (generation > 0)::INTEGER AS "isRedelivery", is_test AS "isTest"
    FROM unnest(@attemptIds::BIGINT[], @deliveryIds::BIGINT[]) AS one (attempt_id, delivery_id)
      JOIN attempts ON attempts.id = one.attempt_id AND attempts.delivery_id = one.delivery_id
      JOIN deliveries ON deliveries.id = one.delivery_id
    ORDER BY deliveries.id FOR UPDATE OF attempts, deliveries`);
  return {
    reported: (ends) =>
      reported({
        attemptIds: ends.map(({ attemptId }) => attemptId),
        deliveryIds: ends.map(({ deliveryId }) => deliveryId),
      }),
    subscriptions: rows(`
      SELECT deliveries.id AS "deliveryId", ${SUBSCRIPTION_STATE}
      FROM deliveries
        JOIN events ON events.id = deliveries.event_id
        JOIN webhooks ON webhooks.id = deliveries.webhook_id
      WHERE deliveries.id = ANY(?::BIGINT[])`),
    setStates: (states, at) => setStates({ states: JSON.stringify(states), at }),
    setNoticed: write(`
      UPDATE deliveries SET lease_until = NULL
      WHERE id = ? AND state = 'cancelled' AND lease_until IS NOT NULL`),
  } satisfies Partial<ReportStatements>;
}

function streakStatements(tx: Tx) {
  const { rows, changes, write } = statements(tx);
  const disable = write<[number, string]>(`
    UPDATE webhooks
    SET status = 'disabled', disabled_at = ?, disabled_reason = 'failing_5d', version = version + 1
    WHERE id = ?`);
  // Index deliveries_due.
  const skipPending = changes<[number, string]>(`
    UPDATE deliveries SET state = 'skipped', reason = 'endpoint_disabled', due = NULL, done_at = ?
    WHERE webhook_id = ? AND state = 'pending'`);
  return {
    totals: rows(`
      SELECT id AS "webhookId", ${STREAK}, ${PACE}, status FROM webhooks
      WHERE id IN (SELECT webhook_id FROM deliveries WHERE id = ANY(?::BIGINT[]))`),
    // Index deliveries_due.
    saveTotals: write(`
      UPDATE webhooks
      SET cap = @cap, breaker_ms = @breakerMs, not_before = @notBefore,
        first_failure_at = @firstFailureAt, last_attempt_at = @lastAttemptAt,
        consecutive_failures = @consecutiveFailures, next_due = ${NEXT_DUE}
      WHERE id = @webhookId`),
    setStreak: write(`
      UPDATE webhooks
      SET first_failure_at = @firstFailureAt, last_attempt_at = @lastAttemptAt,
        consecutive_failures = @consecutiveFailures
      WHERE id = @webhookId`),
    disable(webhookId, at) {
      disable(at, webhookId);
      return skipPending(at, webhookId);
    },
    countDay: dayCounter(tx),
    failing: rows(`
      SELECT ${STREAK}, id AS "webhookId" FROM webhooks
      WHERE first_failure_at IS NOT NULL AND status = 'enabled' ORDER BY id FOR NO KEY UPDATE`),
  } satisfies Partial<ReportStatements>;
}

function heartbeatStatements(tx: Tx) {
  const { value, number, write } = statements(tx);
  return {
    // Locked: one of several cores that start counts the time in which none ran.
    heartbeat: value('SELECT at FROM heartbeat FOR UPDATE'),
    setHeartbeat: write(`
      INSERT INTO heartbeat (id, at) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET at = excluded.at`),
    lastTime: number(`
      SELECT MAX(at) FROM (
        SELECT at FROM heartbeat UNION ALL SELECT MAX(created_at) FROM events) AS times`),
  } satisfies Partial<ReportStatements>;
}
