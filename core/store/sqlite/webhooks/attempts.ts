/** The ends of attempts in SQLite. Their rules: core/store/operations/delivery/attempts.ts. */
import type { FailureStreak } from '../../../delivery/disable.ts';
import type { SubscriptionState } from '../../../delivery/transitions.ts';
import type {
  BatchTotals,
  ReportedDelivery,
  ReportStatements,
} from '../../operations/delivery/attempts.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { NEXT_DUE, SUBSCRIPTION_STATE } from './due.ts';

type Attempt = { endedAt: number | null; outcome: string | null };

export function reportStatements(tx: Tx): ReportStatements {
  const sql = { ...prepareAttempts(tx), ...prepareStreaks(tx) };
  return {
    attempt: (attemptId, deliveryId) => found(sql.attempt.get(attemptId, deliveryId)),
    delivery: (deliveryId) => found(sql.delivery.get(deliveryId)),
    subscription: (deliveryId) => found(sql.subscription.get(deliveryId)),
    /** By position, as it runs for each delivery: names cost as much as the update. */
    endAttempt({ outcome, status, latencyMs, error, response, attemptId }, at) {
      const [code, text] = [status || null, error || null];
      sql.endAttempt.run(at, outcome, code, latencyMs, text, response, attemptId);
    },
    removeAttempt: (attemptId) => void sql.removeAttempt.run(attemptId),
    setDelivered: (deliveryId, tries, at) => void sql.setDelivered.run(tries, at, deliveryId),
    setState: (next) => void sql.setState.run(next),
    setNoticed: (deliveryId) => void sql.setNoticed.run(deliveryId),
    totals: (webhookId) => found(sql.totals.get(webhookId)),
    saveTotals: (totals) => void sql.saveTotals.run(totals),
    disable(webhookId, at) {
      sql.disable.run(at, webhookId);
      sql.skipPending.run(at, webhookId);
    },
    failing: () => found(sql.failing.all()),
    setStreak: (streak) => void sql.setStreak.run(streak),
    heartbeat: () => found(sql.heartbeat.get()),
    setHeartbeat: (at) => void sql.setHeartbeat.run(at),
    lastTime: () => found(sql.lastTime.get() ?? 0),
  };
}

const STREAK = `first_failure_at AS firstFailureAt, last_attempt_at AS lastAttemptAt,
  consecutive_failures AS consecutiveFailures`;
const PACE = 'cap, breaker_ms AS breakerMs, not_before AS notBefore';

function prepareAttempts({ db }: Tx) {
  return {
    // Two reads, by row: joined they take four times as long.
    attempt: db.prepare<[number, number], Attempt>(`
      SELECT ended_at AS endedAt, outcome FROM attempts WHERE id = ? AND delivery_id = ?`),
    delivery: db.prepare<[number], ReportedDelivery>(`
      SELECT webhook_id AS webhookId, state, claim_seq AS claimSeq, tries,
        generation > 0 AS isRedelivery, is_test AS isTest
      FROM deliveries WHERE id = ?`),
    subscription: db.prepare<[number], SubscriptionState>(`
      SELECT ${SUBSCRIPTION_STATE}
      FROM deliveries
        JOIN events ON events.id = deliveries.event_id
        JOIN webhooks ON webhooks.id = deliveries.webhook_id
      WHERE deliveries.id = ?`),
    setDelivered: db.prepare<[number, number, number]>(`
      UPDATE deliveries
      SET state = 'delivered', reason = NULL, due = NULL, tries = ?, lease_until = NULL,
        done_at = ?
      WHERE id = ?`),
    removeAttempt: db.prepare<[number]>('DELETE FROM attempts WHERE id = ?'),
    endAttempt: db.prepare<
      [number, string, number | null, number, string | null, Uint8Array, number]
    >(`
      UPDATE attempts
      SET ended_at = ?, outcome = ?, status = ?, latency_ms = ?, error = ?, response = ?
      WHERE id = ?`),
    setState: db.prepare<[object]>(`
      UPDATE deliveries
      SET state = @state, reason = @reason, due = @due, tries = @tries, lease_until = NULL,
        done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at END
      WHERE id = @deliveryId`),
    setNoticed: db.prepare<[number]>(`
      UPDATE deliveries SET lease_until = NULL
      WHERE id = ? AND state = 'cancelled' AND lease_until IS NOT NULL`),
  };
}

function prepareStreaks({ db }: Tx) {
  return {
    totals: db.prepare<[string], BatchTotals>(
      `SELECT id AS webhookId, ${STREAK}, ${PACE}, status FROM webhooks WHERE id = ?`,
    ),
    // Index deliveries_due.
    saveTotals: db.prepare<[BatchTotals]>(`
      UPDATE webhooks
      SET cap = @cap, breaker_ms = @breakerMs, not_before = @notBefore,
        first_failure_at = @firstFailureAt, last_attempt_at = @lastAttemptAt,
        consecutive_failures = @consecutiveFailures, next_due = ${NEXT_DUE}
      WHERE id = @webhookId`),
    setStreak: db.prepare<[FailureStreak & { webhookId: string }]>(`
      UPDATE webhooks
      SET first_failure_at = @firstFailureAt, last_attempt_at = @lastAttemptAt,
        consecutive_failures = @consecutiveFailures
      WHERE id = @webhookId`),
    disable: db.prepare<[number, string]>(`
      UPDATE webhooks
      SET status = 'disabled', disabled_at = ?, disabled_reason = 'failing_5d',
        version = version + 1
      WHERE id = ?`),
    // Index deliveries_due.
    skipPending: db.prepare<[number, string]>(`
      UPDATE deliveries SET state = 'skipped', reason = 'endpoint_disabled', due = NULL, done_at = ?
      WHERE webhook_id = ? AND state = 'pending'`),
    failing: db.prepare<[], FailureStreak & { webhookId: string }>(`
      SELECT ${STREAK}, id AS webhookId FROM webhooks
      WHERE first_failure_at IS NOT NULL AND status = 'enabled'`),
    heartbeat: db.prepare<[], number>('SELECT at FROM heartbeat').pluck(),
    lastTime: db
      .prepare<[], number | null>(`
        SELECT MAX(at) FROM (
          SELECT at FROM heartbeat UNION ALL SELECT MAX(created_at) FROM events)`)
      .pluck(),
    setHeartbeat: db.prepare<[number]>(`
      INSERT INTO heartbeat (id, at) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET at = excluded.at`),
  };
}
