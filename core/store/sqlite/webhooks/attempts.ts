/**
 * How attempts end, in SQLite. in_flight -> delivered (2xx), pending with a later due, or
 * exhausted; the webhook's streak of failures moves in the same operation and may disable it. A
 * report is fenced by `claim_seq`: one that comes late fills its attempt's row and may raise the
 * delivery to delivered, nothing else. One that comes twice changes nothing.
 */

import { must } from '../../../../proto/common/must.ts';
import { afterAttempt, type Rule, type Streak, withoutGap } from '../../../delivery/disable.ts';
import { type Pace, paceAfter } from '../../../delivery/rate.ts';
import { afterFailure, again, type Standing } from '../../../delivery/transitions.ts';
import type { AttemptEnd, DeliveryOps } from '../../types/deliveries.ts';
import type { Tx } from '../engine/transaction.ts';
import { NEXT_DUE, STANDING } from './due.ts';

type Found = {
  webhookId: string;
  state: string;
  claimSeq: number;
  tries: number;
  isReplay: 0 | 1;
  isTest: 0 | 1;
};
type Begun = { endedAt: number | null; outcome: string | null };

/** What a batch of reports makes of one webhook; written once, at the end of the batch. */
type Tally = Streak & Pace & { webhookId: string; status: string };

/** What the reports of one batch have in common. */
type Reported = { at: number; rule: Rule; tallyOf: (webhookId: string) => Tally };

type Report = Omit<Parameters<DeliveryOps['reportAttempts']>[0], 'next'>;
type ReportOps = Pick<DeliveryOps, 'beat' | 'lastTime'> & {
  /** Gives the webhooks that this disabled. */
  record(report: Report): { disabled: string[] };
};

export function reportOps(tx: Tx): ReportOps {
  const sql = { ...prepareAttempts(tx), ...prepareStreaks(tx) };

  /**
   * The streak and the pace of its webhook; true when that disabled it. What a person asked for
   * again says how the endpoint fares, and nothing about five days; a test says neither.
   */
  function count(tally: Tally, found: Found, end: AttemptEnd, { at, rule }: Reported): boolean {
    const { outcome, status } = end;
    const { streak, disables } = afterAttempt(tally, { ok: outcome === 'ok', at }, rule);
    const failuresInRow = streak.consecutiveFailures;
    Object.assign(tally, paceAfter(tally, { outcome, status, at, failuresInRow }));
    tally.consecutiveFailures = failuresInRow;
    if (found.isReplay) return false;
    Object.assign(tally, streak);
    if (!disables || tally.status !== 'enabled') return false;
    sql.disable.run(at, tally.webhookId);
    sql.skipPending.run(at, tally.webhookId);
    tally.status = 'disabled';
    return true;
  }

  /** Takes one report; gives the webhook when this disabled it. */
  function report(end: AttemptEnd, reported: Reported): string | undefined {
    const { at, tallyOf } = reported;
    const { deliveryId, outcome } = end;
    const begun = sql.begun.get(end.attemptId, deliveryId);
    if (!begun || (begun.endedAt !== null && begun.outcome !== 'interrupted')) return undefined;
    const found = must(sql.find.get(deliveryId), 'delivery');
    const { webhookId, tries, isTest } = found;
    const isCurrent = found.state === 'in_flight' && found.claimSeq === end.claimSeq;
    if (!isCurrent) sql.letGo.run(deliveryId);
    if (outcome === 'unsent') {
      if (isCurrent) handBack(end, found, at);
      if (isCurrent) tallyOf(webhookId);
      return undefined;
    }
    endAttempt(end, at);
    const ok = outcome === 'ok';
    if (!isCurrent && (!ok || found.state === 'delivered')) return undefined;
    const tally = tallyOf(webhookId);
    const disabled = !isTest && count(tally, found, end, reported);
    if (ok) {
      sql.deliver.run(tries + +isCurrent, at, deliveryId);
      return undefined;
    }
    const next = afterFailure(end, tries + 1, at, must(sql.standing.get(deliveryId), 'webhook'));
    sql.move.run({ deliveryId, at, ...next });
    return disabled ? webhookId : undefined;
  }

  /** By place, as what runs for each delivery: names cost as much as the update. */
  function endAttempt(end: AttemptEnd, at: number): void {
    const { outcome, status, latencyMs, error, response, attemptId } = end;
    sql.endAttempt.run(at, outcome, status || null, latencyMs, error || null, response, attemptId);
  }

  function handBack({ deliveryId, attemptId }: AttemptEnd, { tries }: Found, at: number): void {
    sql.forget.run(attemptId);
    const standing = must(sql.standing.get(deliveryId), 'webhook');
    sql.move.run({ deliveryId, at, ...again(tries, at, standing) });
  }

  return {
    record({ ends, at, rule }) {
      const tallies = new Map<string, Tally>();
      const tallyOf = (webhookId: string) => {
        const tally = tallies.get(webhookId) ?? must(sql.tally.get(webhookId), 'webhook');
        tallies.set(webhookId, tally);
        return tally;
      };
      const disabled = ends.flatMap((end) => report(end, { at, rule, tallyOf }) ?? []);
      for (const tally of tallies.values()) sql.settle.run(tally);
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
    // Two reads, by row: joined they take four times as long.
    begun: db.prepare<[number, number], Begun>(`
      SELECT ended_at AS endedAt, outcome FROM attempts WHERE id = ? AND delivery_id = ?`),
    find: db.prepare<[number], Found>(`
      SELECT webhook_id AS webhookId, state, claim_seq AS claimSeq, tries,
        generation > 0 AS isReplay, is_test AS isTest
      FROM deliveries WHERE id = ?`),
    standing: db.prepare<[number], Standing>(`
      SELECT ${STANDING}
      FROM deliveries
        JOIN events ON events.id = deliveries.event_id
        JOIN webhooks ON webhooks.id = deliveries.webhook_id
      WHERE deliveries.id = ?`),
    deliver: db.prepare<[number, number, number]>(`
      UPDATE deliveries
      SET state = 'delivered', reason = NULL, due = NULL, tries = ?, lease_until = NULL,
        done_at = ?
      WHERE id = ?`),
    forget: db.prepare<[number]>('DELETE FROM attempts WHERE id = ?'),
    endAttempt: db.prepare<
      [number, string, number | null, number, string | null, Uint8Array, number]
    >(`
      UPDATE attempts
      SET ended_at = ?, outcome = ?, status = ?, latency_ms = ?, error = ?, response = ?
      WHERE id = ?`),
    move: db.prepare<[object]>(`
      UPDATE deliveries
      SET state = @state, reason = @reason, due = @due, tries = @tries, lease_until = NULL,
        done_at = CASE @state WHEN 'pending' THEN NULL ELSE @at END
      WHERE id = @deliveryId`),
    /** The sender of a webhook that was deleted need not be told any more. */
    letGo: db.prepare<[number]>(`
      UPDATE deliveries SET lease_until = NULL
      WHERE id = ? AND state = 'cancelled' AND lease_until IS NOT NULL`),
  };
}

function prepareStreaks({ db }: Tx) {
  return {
    tally: db.prepare<[string], Tally>(
      `SELECT id AS webhookId, ${STREAK}, ${PACE}, status FROM webhooks WHERE id = ?`,
    ),
    // Index deliveries_due.
    settle: db.prepare<[Tally]>(`
      UPDATE webhooks
      SET cap = @cap, breaker_ms = @breakerMs, not_before = @notBefore,
        first_failure_at = @firstFailureAt, last_attempt_at = @lastAttemptAt,
        consecutive_failures = @consecutiveFailures, next_due = ${NEXT_DUE}
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
