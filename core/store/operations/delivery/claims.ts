/**
 * The claim of deliveries. pending -> (claim) -> in_flight -> delivered, pending or exhausted;
 * attempts.ts ends an attempt. The claim is the lock: any number of senders may claim concurrently.
 * An attempt's row is on disk before its request is sent, so every attempt is recorded.
 */
import { must } from '../../../../proto/common/must.ts';
import { BURST_MS, capOf, pacedAfter, tokensOf } from '../../../delivery/rate.ts';
import {
  afterInterruption,
  isLost,
  type Next,
  type SubscriptionState,
  TEST_TYPE,
} from '../../../delivery/transitions.ts';
import type {
  Claimed,
  ClaimedRow,
  ClaimWanted,
  DayCounts,
  Sender,
} from '../../types/deliveries.ts';
import type { Read, Steps, Transaction } from '../steps.ts';

export type DueWebhook = {
  id: string;
  projectId: string;
  endpoint: string;
  cap: number;
  breakerMs: number;
  pacedUntil: number;
  inFlight: number;
  projectInFlight: number;
};
export type PendingDelivery = {
  id: number;
  eventId: string;
  type: string;
  tries: number;
  generation: number;
  claimSeq: number;
  lastAttempt: number | null;
};
export type LostDelivery = SubscriptionState & {
  id: number;
  webhookId: string;
  tries: number;
  interrupted: number;
};

type Trigger = 'event' | 'manual' | 'retry';
type Secret = { seq: number; sealed: Uint8Array };

export type TakenDelivery = {
  deliveryId: number;
  claimSeq: number;
  n: number;
  trigger: Trigger;
  endpoint: string;
  /** The sequence numbers of its secrets, newest first. */
  signedBy: readonly number[];
};

export type ClaimStatements = {
  /** Webhooks with a delivery to send now, the least recently served first. */
  due(wanted: {
    at: number;
    /** Of this claim. */
    max: number;
    perProjectMax: number;
    slackMs: number;
  }): Read<DueWebhook[]>;
  /** Due deliveries of the webhooks, the first due first. */
  pending(
    wanted: readonly { webhookId: string; max: number }[],
    at: number,
  ): Read<(PendingDelivery & { webhookId: string })[]>;
  /** In flight with the sender; their attempts begin. In any order. */
  take(
    taken: readonly TakenDelivery[],
    wanted: ClaimWanted,
  ): Read<{ deliveryId: number; attemptId: number; body: Uint8Array }[]>;
  /** The webhook is the most recently served; its next due time is computed anew. */
  setServed(webhookId: string, pacedUntil: number): void;
  /** The live ones of the webhooks, newest first. */
  secrets(webhookIds: readonly string[], at: number): Read<(Secret & { webhookId: string })[]>;
  nextDue(wanted: { at: number; slackMs: number }): Read<number | null>;
  /** Deleted webhooks with an attempt of the sender in flight, of which it was not informed. */
  gone(sender: Sender & { at: number }): Read<string[]>;
  setInformed(senderId: string): void;
  /** In flight under a lease that ended, or of an earlier instance of the sender. */
  lost(sender: Sender & { at: number }): Read<LostDelivery[]>;
  interruptAttempt(deliveryId: number, at: number): void;
  setState(next: Next & { id: number; interrupted: number; at: number }): void;
  recountDue(webhookId: string): void;
  /** Counts for the console. */
  countDay(webhookId: string, at: number, counts: Partial<DayCounts>): void;
};

export function* claimDeliveries(
  sql: ClaimStatements,
  tx: Transaction,
  wanted: ClaimWanted,
): Steps<Claimed> {
  const { at, max, perProjectMax, ratePerS, signedAtS } = wanted;
  const dueNow = () => sql.due({ at, max, perProjectMax, slackMs: slackMs(ratePerS) });
  const lost = sql.lost(wanted);
  const [due, gone] = [max > 0 ? dueNow() : undefined, sql.gone(wanted)];
  const released = releaseLost(sql, yield* lost, wanted);
  // again, where released deliveries are due now
  const webhooks = due && (yield* released > 0 ? dueNow() : due);
  const claimed: Claimed = { claims: [], signedAtS, secrets: {}, nextDue: null, gone: [] };
  if (webhooks && webhooks.length > 0) yield* claimAll(sql, tx, webhooks, { wanted, claimed });
  if (claimed.claims.length > 0) tx.crashPoint('claim-deliveries');
  tx.later(sql.nextDue({ at, slackMs: slackMs(ratePerS) }), (nextDue) => {
    claimed.nextDue = nextDue;
  });
  claimed.gone = yield* gone;
  // The sender is informed once of each.
  if (claimed.gone.length > 0) sql.setInformed(wanted.senderId);
  return claimed;
}

type Claiming = { wanted: ClaimWanted; claimed: Claimed };

/**
 * Claims due deliveries, in turns, within the limits of each webhook and of its project. Adds the
 * secrets that sign them.
 */
function* claimAll(
  sql: ClaimStatements,
  tx: Transaction,
  webhooks: DueWebhook[],
  { wanted, claimed }: Claiming,
): Steps<void> {
  const { at, max, perProjectMax } = wanted;
  const open = webhooks.map((webhook) => ({ ...webhook, max: mostOf(webhook, wanted) }));
  const some = open.filter((webhook) => webhook.max > 0);
  const ids = some.map(({ id }) => id);
  const wantedOf = some.map(({ id, max }) => ({ webhookId: id, max }));
  const [reading, secrets] = [sql.pending(wantedOf, at), sql.secrets(ids, at)];
  const pending = Map.groupBy(yield* reading, ({ webhookId }) => webhookId);
  const secretsOf = Map.groupBy(yield* secrets, ({ webhookId }) => webhookId);
  const ofProject = new Map<string, number>();
  const taken: TakenDelivery[] = [];
  const served: [id: string, pacedUntil: number][] = [];
  for (const webhook of some) {
    const { id, projectId, projectInFlight, pacedUntil } = webhook;
    const ofOthers = ofProject.get(projectId) ?? 0;
    const free = Math.min(
      webhook.max,
      perProjectMax - projectInFlight - ofOthers,
      max - claimed.claims.length,
    );
    if (free <= 0) continue;
    const signing = (secretsOf.get(id) ?? []).map(({ seq, sealed }) => ({ seq, sealed }));
    claimed.secrets[id] = signing;
    const rows = (pending.get(id) ?? []).slice(0, free);
    const signedBy = signing.map(({ seq }) => seq);
    taken.push(...rows.map((row) => takenOf(row, webhook, signedBy)));
    claimed.claims.push(...rows.map((row) => claimOf(row, webhook)));
    ofProject.set(projectId, ofOthers + rows.length);
    const pace = { count: rows.length, ratePerS: wanted.ratePerS };
    served.push([id, pacedAfter(pacedUntil, at, pace)]);
  }
  if (taken.length > 0) tx.later(sql.take(taken, wanted), (all) => fill(claimed.claims, all));
  for (const [id, pacedUntil] of served) sql.setServed(id, pacedUntil);
}

/** Of one webhook, whatever the others of its project have. */
function mostOf(webhook: DueWebhook, { at, max, perProjectMax, ratePerS }: ClaimWanted): number {
  return Math.min(
    capOf(webhook) - webhook.inFlight,
    tokensOf(webhook.pacedUntil, at, ratePerS),
    perProjectMax - webhook.projectInFlight,
    max,
  );
}

function takenOf(
  row: PendingDelivery,
  { endpoint }: DueWebhook,
  signedBy: readonly number[],
): TakenDelivery {
  const n = numberOf(row);
  const attempt = { n, trigger: triggerOf(row, n), endpoint, signedBy };
  return { deliveryId: row.id, claimSeq: row.claimSeq + 1, ...attempt };
}

/** Without what its attempt gets from the database. */
function claimOf(row: PendingDelivery, { id: webhookId, endpoint }: DueWebhook): ClaimedRow {
  const { id: deliveryId, claimSeq, eventId } = row;
  const rest = { n: numberOf(row), webhookId, endpoint, eventId };
  return { deliveryId, claimSeq: claimSeq + 1, attemptId: 0, ...rest, body: NO_BODY };
}

const NO_BODY = new Uint8Array();

function fill(
  claims: ClaimedRow[],
  taken: { deliveryId: number; attemptId: number; body: Uint8Array }[],
): void {
  const byId = new Map(taken.map((one) => [one.deliveryId, one]));
  for (const claim of claims) Object.assign(claim, must(byId.get(claim.deliveryId), 'attempt'));
}

/** Of its next attempt, from 1. */
function numberOf({ lastAttempt }: PendingDelivery): number {
  return (lastAttempt ?? 0) + 1;
}

/**
 * Releases deliveries of expired leases and of earlier instances of the sender: due at once, their
 * attempts interrupted. Returns their number.
 */
function releaseLost(
  sql: ClaimStatements,
  lost: LostDelivery[],
  { at, jitter }: ClaimWanted,
): number {
  for (const row of lost) {
    const { id, webhookId, interrupted } = row;
    sql.interruptAttempt(id, at);
    const next = afterInterruption({ ...row, interrupted: interrupted + 1 }, { at, jitter });
    sql.setState({ ...next, id, at });
    sql.recountDue(webhookId);
    if (isLost(next) && !row.isTest) sql.countDay(webhookId, at, { lost: 1 });
  }
  return lost.length;
}

/** In milliseconds: the lead of a webhook's rate at which one more delivery may be sent. */
function slackMs(ratePerS: number): number {
  return BURST_MS - Math.ceil(1_000 / ratePerS);
}

function triggerOf({ type, generation, tries }: PendingDelivery, n: number): Trigger {
  if (type === TEST_TYPE || (generation > 0 && tries === 0)) return 'manual';
  return n === 1 ? 'event' : 'retry';
}
