/** The ends of attempts in SQLite. Their rules: core/store/operations/delivery/attempts.ts. */
import type { SubscriptionState } from '../../../delivery/transitions.ts';
import type {
  BatchTotals,
  ReportedDelivery,
  ReportStatements,
} from '../../operations/delivery/attempts.ts';
import { frequentQueries, queries, statements } from '../engine/statements.ts';
import { found } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { dayCounter } from './days.ts';
import { NEXT_DUE, SUBSCRIPTION_STATE } from './due.ts';

const STREAK = `first_failure_at AS firstFailureAt, last_attempt_at AS lastAttemptAt,
  consecutive_failures AS consecutiveFailures`;
type Reported = { endedAt: number | null; outcome: string | null };

const PACE = 'cap, breaker_ms AS breakerMs, not_before AS notBefore';

export function reportStatements(tx: Tx): ReportStatements {
  return {
    ...attemptStatements(tx),
    ...deliveryStatements(tx),
    ...streakStatements(tx),
    ...heartbeatStatements(tx),
  };
}

function attemptStatements(tx: Tx) {
  const { write } = queries(tx);
  const end = write(`
    UPDATE attempts
    SET ended_at = ?, outcome = ?, status = ?, latency_ms = ?, error = ?, response = ?
    WHERE id = ?`);
  return {
    /** By position, as it runs for each delivery: names cost as much as the update. */
    endAttempts(ends, at) {
      for (const { outcome, status, latencyMs, error, response, attemptId } of ends) {
        end(at, outcome, status || null, latencyMs, error || null, response, attemptId);
      }
    },
    removeAttempt: write('DELETE FROM attempts WHERE id = ?'),
  } satisfies Partial<ReportStatements>;
}

function deliveryStatements(tx: Tx) {
  const { row, write } = frequentQueries(tx);
  const attempt = row<[number, number], Reported>(`
    SELECT ended_at AS endedAt, outcome FROM attempts WHERE id = ? AND delivery_id = ?`);
  // Beside `attempt` and not joined with it: joined they take four times as long.
  const delivery = row<[number], ReportedDelivery>(`
    SELECT webhook_id AS webhookId, state, claim_seq AS claimSeq, tries,
      generation > 0 AS isRedelivery, is_test AS isTest
    FROM deliveries WHERE id = ?`);
  const subscription = row<[number], SubscriptionState>(`
    SELECT ${SUBSCRIPTION_STATE}
    FROM deliveries
      JOIN events ON events.id = deliveries.event_id
      JOIN webhooks ON webhooks.id = deliveries.webhook_id
    WHERE deliveries.id = ?`);
  const setState = write<[object]>(`
    UPDATE deliveries
    SET state = @state, reason = @reason, due = @due, tries = @tries, lease_until = NULL,
      done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at END
    WHERE id = @deliveryId`);
  const setDelivered = write(`
    UPDATE deliveries
    SET state = 'delivered', reason = NULL, due = NULL, tries = ?, lease_until = NULL,
      done_at = ?
    WHERE id = ?`);
  return {
    reported(ends) {
      const all = ends.flatMap(({ attemptId, deliveryId }) => {
        const ofAttempt = attempt(attemptId, deliveryId);
        const ofDelivery = ofAttempt && delivery(deliveryId);
        return ofDelivery ? { attemptId, deliveryId, ...ofAttempt, ...ofDelivery } : [];
      });
      return found(all);
    },
    subscriptions(deliveryIds) {
      const all = deliveryIds.flatMap((deliveryId) => {
        const state = subscription(deliveryId);
        return state ? { deliveryId, ...state } : [];
      });
      return found(all);
    },
    setStates(states, at) {
      for (const next of states) {
        if (next.state === 'delivered') setDelivered(next.tries, at, next.deliveryId);
        else setState({ ...next, at });
      }
    },
    setNoticed: write(`
      UPDATE deliveries SET lease_until = NULL
      WHERE id = ? AND state = 'cancelled' AND lease_until IS NOT NULL`),
  } satisfies Partial<ReportStatements>;
}

function streakStatements(tx: Tx) {
  const { rows, write } = statements(tx);
  const totals = frequentQueries(tx).rows<[string], BatchTotals>(`
    SELECT id AS webhookId, ${STREAK}, ${PACE}, status FROM webhooks
    WHERE id IN (
      SELECT webhook_id FROM deliveries WHERE id IN (SELECT value FROM json_each(?)))`);
  const disable = write(`
    UPDATE webhooks
    SET status = 'disabled', disabled_at = ?, disabled_reason = 'failing_5d', version = version + 1
    WHERE id = ?`);
  // Index deliveries_due.
  const skipPending = queries(tx).changes<[number, string]>(`
    UPDATE deliveries SET state = 'skipped', reason = 'endpoint_disabled', due = NULL, done_at = ?
    WHERE webhook_id = ? AND state = 'pending'`);
  return {
    totals: (deliveryIds) => found(totals(JSON.stringify(deliveryIds))),
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
      return found(skipPending(at, webhookId));
    },
    countDay: dayCounter(tx),
    failing: rows(`
      SELECT ${STREAK}, id AS webhookId FROM webhooks
      WHERE first_failure_at IS NOT NULL AND status = 'enabled'`),
  } satisfies Partial<ReportStatements>;
}

function heartbeatStatements(tx: Tx) {
  const { value, number, write } = statements(tx);
  return {
    heartbeat: value('SELECT at FROM heartbeat'),
    setHeartbeat: write(`
      INSERT INTO heartbeat (id, at) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET at = excluded.at`),
    lastTime: number(`
      SELECT MAX(at) FROM (
        SELECT at FROM heartbeat UNION ALL SELECT MAX(created_at) FROM events)`),
  } satisfies Partial<ReportStatements>;
}
