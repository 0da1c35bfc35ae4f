/**
 * How attempts end, in SQLite. in_flight -> delivered (2xx), pending with a later due, or
 * exhausted; the webhook's streak of failures moves in the same operation and may disable it. A
 * report is fenced by `claim_seq`: one that comes late fills its attempt's row and may raise the
 * delivery to delivered, nothing else. One that comes twice changes nothing.
 */

import { must } from '../../../proto/must.ts';
import { afterAttempt, type Streak, withoutGap } from '../../delivery/disable.ts';
import { delayMs } from '../../delivery/schedule.ts';
import type { AttemptEnd, DeliveryOps } from '../types/deliveries.ts';
import { RECOUNT_DUE } from './due.ts';
import type { Tx } from './tx.ts';

type Found = {
  webhookId: string;
  state: string;
  claimSeq: number;
  tries: number;
  endedAt: number | null;
  outcome: string | null;
  status: 'enabled' | 'disabled' | 'deleted';
  isSubscribed: 0 | 1;
};

type After = { state: string; reason: string | null; due: number | null };

export function reportOps(tx: Tx): Pick<DeliveryOps, 'reportAttempts' | 'beat'> {
  const sql = prepare(tx);

  /** The streak of its webhook; true when that disabled it. */
  function count(webhookId: string, attempt: { ok: boolean; at: number }, disableAfterMs: number) {
    const before = must(sql.streak.get(webhookId), 'webhook');
    const { streak, disables } = afterAttempt(before, attempt, { disableAfterMs });
    sql.setStreak.run({ ...streak, webhookId });
    if (!disables || before.status !== 'enabled') return false;
    sql.disable.run(attempt.at, webhookId);
    sql.skipPending.run(attempt.at, webhookId);
    return true;
  }

  /** Takes one report; true when it disabled the webhook. */
  function report(end: AttemptEnd, at: number, disableAfterMs: number): boolean {
    const found = sql.find.get(end.attemptId, end.deliveryId);
    if (!found || (found.endedAt !== null && found.outcome !== 'interrupted')) return false;
    const { deliveryId, attemptId, outcome } = end;
    const { webhookId } = found;
    const isCurrent = found.state === 'in_flight' && found.claimSeq === end.claimSeq;
    if (outcome === 'unsent') {
      if (!isCurrent) return false;
      sql.forget.run(attemptId);
      const open = { state: 'pending', reason: null, due: at };
      sql.move.run({ deliveryId, tries: found.tries, at, ...unlessEnded(open, found) });
      sql.recountDue.run(webhookId);
      return false;
    }
    sql.endAttempt.run({ ...end, error: end.error || null, status: end.status || null, at });
    const ok = outcome === 'ok';
    if (!isCurrent && (!ok || found.state === 'delivered')) return false;
    const disabled = count(webhookId, { ok, at }, disableAfterMs);
    const next = ok
      ? { state: 'delivered', reason: null, due: null }
      : unlessEnded(afterFailure(end, found.tries + 1, at), {
          ...found,
          status: disabled ? 'disabled' : found.status,
        });
    sql.move.run({ deliveryId, tries: found.tries + (isCurrent ? 1 : 0), at, ...next });
    sql.recountDue.run(webhookId);
    return disabled;
  }

  return {
    reportAttempts({ ends, at, disableAfterMs }) {
      const disabled: string[] = [];
      for (const end of ends) {
        if (!report(end, at, disableAfterMs)) continue;
        const found = must(sql.find.get(end.attemptId, end.deliveryId), 'attempt');
        disabled.push(found.webhookId);
      }
      tx.crashPoint('report-attempts');
      // A place came free, or something is due again: whoever waits may claim.
      tx.wake('deliveries');
      return { disabled };
    },

    beat({ at, gapMinMs }) {
      const gapMs = Math.max(0, at - (sql.heartbeat.get() ?? at));
      if (gapMs > gapMinMs) {
        for (const { webhookId, ...streak } of sql.failing.all()) {
          sql.setStreak.run({ ...withoutGap(streak, gapMs), webhookId });
        }
      }
      sql.setHeartbeat.run(at);
      return { gapMs: gapMs > gapMinMs ? gapMs : 0 };
    },
  };
}

function afterFailure(end: AttemptEnd, tries: number, at: number): After {
  const delay = delayMs(tries, end, end.jitter);
  if (delay === null) return { state: 'exhausted', reason: 'attempts_failed', due: null };
  return { state: 'pending', reason: null, due: at + delay };
}

/** A delivery does not wait again for a webhook that is disabled, or no longer wants its type. */
function unlessEnded(next: After, found: Pick<Found, 'status' | 'isSubscribed'>): After {
  if (next.state !== 'pending') return next;
  if (found.status === 'deleted')
    return { state: 'cancelled', reason: 'webhook_deleted', due: null };
  if (!found.isSubscribed) return { state: 'cancelled', reason: 'unsubscribed', due: null };
  if (found.status === 'disabled')
    return { state: 'skipped', reason: 'endpoint_disabled', due: null };
  return next;
}

const STREAK = `first_failure_at AS firstFailureAt, last_attempt_at AS lastAttemptAt,
  consecutive_failures AS consecutiveFailures`;

function prepare({ db }: Tx) {
  return {
    find: db.prepare<[number, number], Found>(`
      SELECT deliveries.webhook_id AS webhookId, state, claim_seq AS claimSeq, tries,
        attempts.ended_at AS endedAt, attempts.outcome AS outcome, webhooks.status AS status,
        EXISTS (SELECT 1 FROM json_each(event_types) WHERE value = events.type) AS isSubscribed
      FROM attempts
        JOIN deliveries ON deliveries.id = attempts.delivery_id
        JOIN events ON events.id = deliveries.event_id
        JOIN webhooks ON webhooks.id = deliveries.webhook_id
      WHERE attempts.id = ? AND deliveries.id = ?`),
    forget: db.prepare<[number]>('DELETE FROM attempts WHERE id = ?'),
    endAttempt: db.prepare<[object]>(`
      UPDATE attempts
      SET ended_at = @at, outcome = @outcome, status = @status, latency_ms = @latencyMs,
        error = @error, response = @response
      WHERE id = @attemptId`),
    move: db.prepare<[object]>(`
      UPDATE deliveries
      SET state = @state, reason = @reason, due = @due, tries = @tries, lease_until = NULL,
        done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at END
      WHERE id = @deliveryId`),
    recountDue: db.prepare<[string]>(RECOUNT_DUE),
    streak: db.prepare<[string], Streak & { status: string }>(
      `SELECT ${STREAK}, status FROM webhooks WHERE id = ?`,
    ),
    setStreak: db.prepare<[Streak & { webhookId: string }]>(`
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
    failing: db.prepare<[], Streak & { webhookId: string }>(`
      SELECT ${STREAK}, id AS webhookId FROM webhooks
      WHERE first_failure_at IS NOT NULL AND status = 'enabled'`),
    heartbeat: db.prepare<[], number>('SELECT at FROM heartbeat').pluck(),
    setHeartbeat: db.prepare<[number]>(`
      INSERT INTO heartbeat (id, at) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET at = excluded.at`),
  };
}
