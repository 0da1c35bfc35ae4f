/**
 * The ends of attempts. in_flight -> delivered (2xx), pending with a later due time, or exhausted;
 * the webhook's failure streak moves in the same operation and may disable it. A report is fenced
 * by `claimSeq`: a late one fills its attempt's row and may raise the delivery to delivered,
 * nothing else. A repeated one changes nothing.
 */
import { must } from '../../../../proto/common/must.ts';
import { rangeOf } from '../../../delivery/answer-times.ts';
import {
  afterAttempt,
  type FailureStreak,
  type Rule,
  withoutGap,
} from '../../../delivery/disable.ts';
import { type Pace, paceAfter } from '../../../delivery/rate.ts';
import {
  afterFailure,
  again,
  isLost,
  type Next,
  type SubscriptionState,
} from '../../../delivery/transitions.ts';
import type { AttemptEnd, DayCounts, DeliveryOps, DeliveryState } from '../../types/deliveries.ts';
import { DELIVERY } from '../states.ts';
import type { InSteps, Read, Steps, Transaction } from '../steps.ts';

export type ReportedDelivery = {
  webhookId: string;
  state: DeliveryState;
  claimSeq: number;
  tries: number;
  isRedelivery: 0 | 1;
  isTest: 0 | 1;
};

/** The state of one webhook over a batch of reports; written once, at the end of the batch. */
export type BatchTotals = FailureStreak &
  Pace & { webhookId: string; status: SubscriptionState['status'] };

type ReportedAttempt = {
  attemptId: number;
  deliveryId: number;
  endedAt: number | null;
  outcome: string | null;
};

/** The next state of a delivery, `delivered` among them. */
export type Settled = Omit<Next, 'state'> & {
  deliveryId: number;
  state: Next['state'] | 'delivered';
};

export type ReportStatements = {
  /** The attempts that are of those deliveries, with their deliveries. */
  reported(
    ends: readonly Pick<AttemptEnd, 'attemptId' | 'deliveryId'>[],
  ): Read<(ReportedAttempt & ReportedDelivery)[]>;
  subscriptions(
    deliveryIds: readonly number[],
  ): Read<(SubscriptionState & { deliveryId: number })[]>;
  endAttempts(ends: readonly AttemptEnd[], at: number): void;
  removeAttempt(attemptId: number): void;
  /** `at`: when it was done, where that is its end. */
  setStates(states: readonly Settled[], at: number): void;
  /** The sender of a cancelled delivery needs no notice of it any more. */
  setNoticed(deliveryId: number): void;
  /** Of the webhooks of the deliveries. */
  totals(deliveryIds: readonly number[]): Read<BatchTotals[]>;
  /** Writes them, and the webhook's next due time. */
  saveTotals(totals: BatchTotals): void;
  /** After five days of failure: its pending deliveries are skipped. Returns their number. */
  disable(webhookId: string, at: number): Read<number>;
  /** Counts for the console. */
  countDay(webhookId: string, at: number, counts: DayCounts): void;
  failing(): Read<(FailureStreak & { webhookId: string })[]>;
  setStreak(streak: FailureStreak & { webhookId: string }): void;
  heartbeat(): Read<number | undefined>;
  setHeartbeat(at: number): void;
  /** The latest time on disk; 0 when there is none. */
  lastTime(): Read<number>;
};

/**
 * What the reports of one batch share: rows as they are after the reports that were examined, and
 * what is written at the end of the batch.
 */
type Batch = {
  at: number;
  rule: Rule;
  attempts: Map<number, ReportedAttempt>;
  deliveries: Map<number, ReportedDelivery>;
  subscriptions: Map<number, SubscriptionState>;
  totals: Map<string, BatchTotals>;
  /** Webhooks whose totals changed. */
  changed: Set<BatchTotals>;
  ended: AttemptEnd[];
  settled: Map<number, Settled>;
  days: Map<string, CountedDay>;
};
/** What the reports of one webhook add to its day. */
type CountedDay = DayCounts & { answers: number[] };

type Report = Omit<Parameters<DeliveryOps['reportAttempts']>[0], 'next'>;

/** Records a batch of reports; returns the webhooks that it disabled. */
export function* recordReports(
  sql: ReportStatements,
  tx: Transaction,
  report: Report,
): Steps<string[]> {
  const batch = yield* batchOf(sql, report);
  const disabled: string[] = [];
  for (const end of report.ends) {
    const webhookId = yield* recordOne(sql, end, batch);
    if (webhookId !== undefined) disabled.push(webhookId);
  }
  write(sql, batch);
  for (const totals of batch.changed) sql.saveTotals(totals);
  for (const [webhookId, counts] of batch.days) sql.countDay(webhookId, batch.at, counts);
  tx.crashPoint('report-attempts');
  // A place is free, or a delivery is due again: waiting senders may claim.
  tx.wake('deliveries');
  return disabled;
}

function* batchOf(sql: ReportStatements, { ends, at, rule }: Report): Steps<Batch> {
  const idsOf = (some: AttemptEnd[]) => [...new Set(some.map(({ deliveryId }) => deliveryId))];
  const ids = idsOf(ends);
  const failed = idsOf(ends.filter(({ outcome }) => outcome !== 'ok'));
  const reading = sql.reported(ends);
  const subscribed = sql.subscriptions(failed);
  const counted = sql.totals(ids);
  const [reported, subscriptions, totals] = [yield* reading, yield* subscribed, yield* counted];
  return {
    at,
    rule,
    attempts: new Map(reported.map((one) => [one.attemptId, one])),
    deliveries: new Map(reported.map((one) => [one.deliveryId, one])),
    subscriptions: new Map(subscriptions.map((one) => [one.deliveryId, one])),
    totals: new Map(totals.map((one) => [one.webhookId, one])),
    changed: new Set(),
    ended: [],
    settled: new Map(),
    days: new Map(),
  };
}

/** Before a statement that reads what the reports changed. */
function write(sql: ReportStatements, { at, ended, settled }: Batch): void {
  if (ended.length > 0) sql.endAttempts(ended.splice(0), at);
  if (settled.size > 0) sql.setStates([...settled.values()], at);
  settled.clear();
}

/** Records one report; returns the webhook if the report disabled it. */
function* recordOne(
  sql: ReportStatements,
  end: AttemptEnd,
  batch: Batch,
): Steps<string | undefined> {
  const { deliveryId, outcome } = end;
  const attempt = batch.attempts.get(end.attemptId);
  if (!attempt || (attempt.endedAt !== null && attempt.outcome !== 'interrupted')) {
    return undefined;
  }
  const found = must(batch.deliveries.get(deliveryId), 'delivery');
  const isCurrent = found.state === 'in_flight' && found.claimSeq === end.claimSeq;
  if (!isCurrent) sql.setNoticed(deliveryId);
  if (outcome === 'unsent') {
    if (isCurrent) handBack(sql, end, found, batch);
    return undefined;
  }
  Object.assign(attempt, { endedAt: batch.at, outcome });
  batch.ended.push(end);
  const isSuccess = outcome === 'ok' && DELIVERY[found.state].includes('delivered');
  if (!isCurrent && !isSuccess) return undefined;
  return yield* settle(sql, end, { found, isCurrent }, batch);
}

/** Sets the delivery's next state, and updates its webhook. */
function* settle(
  sql: ReportStatements,
  end: AttemptEnd,
  { found, isCurrent }: { found: ReportedDelivery; isCurrent: boolean },
  batch: Batch,
): Steps<string | undefined> {
  const { deliveryId } = end;
  const { webhookId, tries, isTest } = found;
  const totals = totalsOf(webhookId, batch);
  const disables = isTest === 0 && count(totals, found, end, batch);
  const day = isTest ? newDay() : dayOf(webhookId, batch);
  countAttempt(day, end);
  if (disables) {
    write(sql, batch);
    day.lost += yield* sql.disable(webhookId, batch.at);
  }
  if (end.outcome === 'ok') {
    const delivered = { state: 'delivered', reason: null, due: null } as const;
    setState({ deliveryId, ...delivered, tries: tries + (isCurrent ? 1 : 0) }, batch);
    return undefined;
  }
  const next = afterFailure(end, tries + 1, batch.at, subscriptionOf(deliveryId, totals, batch));
  if (isLost(next)) day.lost += 1;
  setState({ deliveryId, ...next }, batch);
  return disables ? webhookId : undefined;
}

/** No byte was sent: pending again at once, without its attempt. */
function handBack(
  sql: ReportStatements,
  { deliveryId, attemptId }: AttemptEnd,
  { webhookId, tries }: ReportedDelivery,
  batch: Batch,
): void {
  sql.removeAttempt(attemptId);
  batch.attempts.delete(attemptId);
  const totals = totalsOf(webhookId, batch);
  const next = again(tries, batch.at, subscriptionOf(deliveryId, totals, batch));
  setState({ deliveryId, ...next }, batch);
}

function setState(settled: Settled, { deliveries, settled: all }: Batch): void {
  const { deliveryId, state, tries } = settled;
  Object.assign(must(deliveries.get(deliveryId), 'delivery'), { state, tries });
  all.set(deliveryId, settled);
}

/** The batch may have disabled its webhook. */
function subscriptionOf(
  deliveryId: number,
  { status }: BatchTotals,
  { subscriptions }: Batch,
): SubscriptionState {
  return { ...must(subscriptions.get(deliveryId), 'webhook'), status };
}

function totalsOf(webhookId: string, { totals, changed }: Batch): BatchTotals {
  const found = must(totals.get(webhookId), 'webhook');
  changed.add(found);
  return found;
}

function newDay(): CountedDay {
  return { delivered: 0, failed: 0, lost: 0, answers: [] };
}

function dayOf(webhookId: string, { days }: Batch): CountedDay {
  const known = days.get(webhookId) ?? newDay();
  days.set(webhookId, known);
  return known;
}

/** A time-out counts as an answer that took as long. */
function countAttempt(day: CountedDay, { outcome, status, latencyMs }: AttemptEnd): void {
  if (outcome === 'ok') day.delivered += 1;
  else day.failed += 1;
  if (status === 0 && outcome !== 'timeout') return;
  const range = rangeOf(latencyMs);
  while (day.answers.length <= range) day.answers.push(0);
  day.answers[range] = (day.answers[range] ?? 0) + 1;
}

/**
 * Updates the failure streak and the pace of the webhook; true when the report disables it. A
 * redelivery, which a user requested, counts for the pace and not for the five days; a test for
 * neither.
 */
function count(
  totals: BatchTotals,
  found: ReportedDelivery,
  { outcome, status }: AttemptEnd,
  { at, rule }: Batch,
): boolean {
  const { streak, disables } = afterAttempt(totals, { ok: outcome === 'ok', at }, rule);
  const failuresInRow = streak.consecutiveFailures;
  Object.assign(totals, paceAfter(totals, { outcome, status, at, failuresInRow }));
  totals.consecutiveFailures = failuresInRow;
  if (found.isRedelivery) return false;
  Object.assign(totals, streak);
  if (!disables || totals.status !== 'enabled') return false;
  totals.status = 'disabled';
  return true;
}

export function heartbeatOperations(
  sql: ReportStatements,
): InSteps<Pick<DeliveryOps, 'beat' | 'lastTime'>> {
  return {
    *beat({ at, gapMinMs }) {
      const gapMs = Math.max(0, at - ((yield* sql.heartbeat()) ?? at));
      const isGap = gapMs > gapMinMs;
      for (const { webhookId, ...streak } of isGap ? yield* sql.failing() : []) {
        sql.setStreak({ ...withoutGap(streak, gapMs), webhookId });
      }
      sql.setHeartbeat(at);
      return { gapMs: isGap ? gapMs : 0 };
    },
    *lastTime() {
      return yield* sql.lastTime();
    },
  };
}
