/**
 * How attempts end, in SQLite. in_flight -> delivered (2xx), pending with a later due, or
 * exhausted; the webhook's streak of failures moves in the same operation and may disable it. A
 * report is fenced by `claim_seq`: one that comes late fills its attempt's row and may raise the
 * delivery to delivered, nothing else. One that comes twice changes nothing.
 */

import { must } from '../../../proto/must.ts';
import { afterAttempt, type Rule, type Streak, withoutGap } from '../../delivery/disable.ts';
import { afterFailure, again, type Standing } from '../../delivery/next.ts';
import { type Pace, paceAfter } from '../../delivery/pace.ts';
import type { AttemptEnd, DeliveryOps } from '../types/deliveries.ts';
import { RECOUNT_DUE, STANDING } from './due.ts';
import type { Tx } from './tx.ts';

type Found = Standing & {
  webhookId: string;
  state: string;
  claimSeq: number;
  tries: number;
  endedAt: number | null;
  outcome: string | null;
};

export function reportOps(tx: Tx): Pick<DeliveryOps, 'reportAttempts' | 'beat' | 'lastTime'> {
  const sql = { ...prepareAttempts(tx), ...prepareStreaks(tx) };

  /**
   * The streak and the pace of its webhook; true when that disabled it. What a person asked for
   * again says how the endpoint fares, and nothing about five days; a test says neither.
   */
  function count(found: Found, { outcome, status }: AttemptEnd, at: number, rule: Rule): boolean {
    const { webhookId, isReplay, isTest } = found;
    if (isTest) return false;
    const before = must(sql.streak.get(webhookId), 'webhook');
    const { streak, disables } = afterAttempt(before, { ok: outcome === 'ok', at }, rule);
    const failuresInRow = streak.consecutiveFailures;
    sql.setPace.run({ ...paceAfter(before, { outcome, status, at, failuresInRow }), webhookId });
    const { firstFailureAt, lastAttemptAt } = isReplay ? before : streak;
    const counted = { firstFailureAt, lastAttemptAt, consecutiveFailures: failuresInRow };
    sql.setStreak.run({ ...counted, webhookId });
    if (isReplay || !disables || before.status !== 'enabled') return false;
    sql.disable.run(at, webhookId);
    sql.skipPending.run(at, webhookId);
    return true;
  }

  /** Takes one report; true when it disabled the webhook. */
  function report(end: AttemptEnd, at: number, rule: Rule): boolean {
    const found = sql.find.get(end.attemptId, end.deliveryId);
    if (!found || (found.endedAt !== null && found.outcome !== 'interrupted')) return false;
    const { deliveryId, attemptId, outcome } = end;
    const { webhookId, tries } = found;
    const isCurrent = found.state === 'in_flight' && found.claimSeq === end.claimSeq;
    if (!isCurrent) sql.letGo.run(deliveryId);
    if (outcome === 'unsent') {
      if (!isCurrent) return false;
      sql.forget.run(attemptId);
      sql.move.run({ deliveryId, at, ...again(tries, at, found) });
      sql.recountDue.run(webhookId);
      return false;
    }
    sql.endAttempt.run({ ...end, error: end.error || null, status: end.status || null, at });
    const ok = outcome === 'ok';
    if (!isCurrent && (!ok || found.state === 'delivered')) return false;
    const disabled = count(found, end, at, rule);
    const standing = disabled ? { ...found, status: 'disabled' as const } : found;
    const delivered = { state: 'delivered', reason: null, due: null, tries: tries + +isCurrent };
    const next = ok ? delivered : afterFailure(end, tries + 1, at, standing);
    sql.move.run({ deliveryId, at, ...next });
    sql.recountDue.run(webhookId);
    return disabled;
  }

  return {
    reportAttempts({ ends, at, rule }) {
      const disabled: string[] = [];
      for (const end of ends) {
        if (!report(end, at, rule)) continue;
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

    lastTime: () => sql.lastTime.get() ?? 0,
  };
}

const STREAK = `first_failure_at AS firstFailureAt, last_attempt_at AS lastAttemptAt,
  consecutive_failures AS consecutiveFailures`;
const PACE = 'cap, breaker_ms AS breakerMs, not_before AS notBefore';

function prepareAttempts({ db }: Tx) {
  return {
    find: db.prepare<[number, number], Found>(`
      SELECT deliveries.webhook_id AS webhookId, state, claim_seq AS claimSeq, tries,
        attempts.ended_at AS endedAt, attempts.outcome AS outcome, ${STANDING}
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
    /** The sender of a webhook that was deleted need not be told any more. */
    letGo: db.prepare<[number]>(`
      UPDATE deliveries SET lease_until = NULL
      WHERE id = ? AND state = 'cancelled' AND lease_until IS NOT NULL`),
    recountDue: db.prepare<[string]>(RECOUNT_DUE),
  };
}

function prepareStreaks({ db }: Tx) {
  return {
    streak: db.prepare<[string], Streak & Pace & { status: string }>(
      `SELECT ${STREAK}, ${PACE}, status FROM webhooks WHERE id = ?`,
    ),
    setPace: db.prepare<[Pace & { webhookId: string }]>(`
      UPDATE webhooks SET cap = @cap, breaker_ms = @breakerMs, not_before = @notBefore
      WHERE id = @webhookId`),
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
