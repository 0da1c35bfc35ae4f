/**
 * The claim of deliveries. pending -> (claim) -> in_flight -> delivered, pending or exhausted;
 * attempts.ts ends an attempt. The claim is the lock: any number of senders may claim concurrently.
 * An attempt's row is on disk before its request is sent, so every attempt is recorded.
 */
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
  body: Uint8Array;
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

export type ClaimStatements = {
  /** Webhooks with a delivery to send now, the least recently served first. */
  due(wanted: { at: number; perProjectMax: number; slackMs: number }): Read<DueWebhook[]>;
  /** Due deliveries of the webhook, the first due first. */
  pending(webhookId: string, at: number, max: number): Read<PendingDelivery[]>;
  take(deliveryId: number, claimSeq: number, wanted: Sender & { leaseUntil: number }): void;
  /** Gives its id. */
  startAttempt(attempt: {
    deliveryId: number;
    n: number;
    trigger: Trigger;
    endpoint: string;
    at: number;
    signedAtS: number;
    /** The sequence numbers of its secrets, newest first. */
    signedBy: readonly number[];
  }): Read<number>;
  /** The webhook is the most recently served; its next due time is computed anew. */
  setServed(webhookId: string, pacedUntil: number): void;
  /** The live ones, newest first. */
  secrets(webhookId: string, at: number): Read<{ seq: number; sealed: Uint8Array }[]>;
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
  yield* releaseLost(sql, wanted);
  const secrets: Claimed['secrets'] = {};
  const claims = wanted.max > 0 ? yield* claimAll(sql, wanted, secrets) : [];
  if (claims.length > 0) tx.crashPoint('claim-deliveries');
  const { at, ratePerS, signedAtS } = wanted;
  const nextDue = yield* sql.nextDue({ at, slackMs: slackMs(ratePerS) });
  return { claims, signedAtS, secrets, nextDue, gone: yield* goneOf(sql, wanted) };
}

/**
 * Claims due deliveries, in turns, within the limits of each webhook and of its project. Adds the
 * secrets that sign them.
 */
function* claimAll(
  sql: ClaimStatements,
  wanted: ClaimWanted,
  secrets: Claimed['secrets'],
): Steps<ClaimedRow[]> {
  const { at, max, perProjectMax, ratePerS } = wanted;
  const claims: ClaimedRow[] = [];
  const ofProject = new Map<string, number>();
  for (const webhook of yield* sql.due({ at, perProjectMax, slackMs: slackMs(ratePerS) })) {
    const { projectId, projectInFlight, inFlight, pacedUntil } = webhook;
    const taken = ofProject.get(projectId) ?? 0;
    const free = Math.min(
      capOf(webhook) - inFlight,
      tokensOf(pacedUntil, at, ratePerS),
      perProjectMax - projectInFlight - taken,
      max - claims.length,
    );
    if (free <= 0) continue;
    secrets[webhook.id] = yield* sql.secrets(webhook.id, at);
    const signedBy = (secrets[webhook.id] ?? []).map(({ seq }) => seq);
    const some = yield* claimOf(sql, { ...webhook, free, signedBy }, wanted);
    ofProject.set(projectId, taken + some.length);
    claims.push(...some);
  }
  return claims;
}

/** Claims up to `free` due deliveries of one webhook. */
function* claimOf(
  sql: ClaimStatements,
  webhook: DueWebhook & { free: number; signedBy: readonly number[] },
  wanted: ClaimWanted,
): Steps<ClaimedRow[]> {
  const { at, ratePerS, signedAtS } = wanted;
  const { id: webhookId, endpoint, free, signedBy } = webhook;
  const claims: ClaimedRow[] = [];
  for (const row of yield* sql.pending(webhookId, at, free)) {
    const { id: deliveryId, eventId, body } = row;
    const n = (row.lastAttempt ?? 0) + 1;
    const claimSeq = row.claimSeq + 1;
    sql.take(deliveryId, claimSeq, wanted);
    const trigger = triggerOf(row, n);
    const attempt = { deliveryId, n, trigger, endpoint, at, signedAtS, signedBy };
    const attemptId = yield* sql.startAttempt(attempt);
    claims.push({ deliveryId, claimSeq, attemptId, n, webhookId, endpoint, eventId, body });
  }
  const taken = { count: claims.length, ratePerS };
  sql.setServed(webhookId, pacedAfter(webhook.pacedUntil, at, taken));
  return claims;
}

/** Webhooks that were deleted under this sender's attempts. The sender is informed once of each. */
function* goneOf(sql: ClaimStatements, wanted: ClaimWanted): Steps<string[]> {
  const gone = yield* sql.gone(wanted);
  if (gone.length > 0) sql.setInformed(wanted.senderId);
  return gone;
}

/**
 * Releases deliveries of expired leases and of earlier instances of the sender: due at once, their
 * attempts interrupted.
 */
function* releaseLost(sql: ClaimStatements, wanted: ClaimWanted): Steps<void> {
  const { at, jitter } = wanted;
  for (const row of yield* sql.lost(wanted)) {
    const { id, webhookId, interrupted } = row;
    sql.interruptAttempt(id, at);
    const next = afterInterruption({ ...row, interrupted: interrupted + 1 }, { at, jitter });
    sql.setState({ ...next, id, at });
    sql.recountDue(webhookId);
    if (isLost(next) && !row.isTest) sql.countDay(webhookId, at, { lost: 1 });
  }
}

/** In milliseconds: the lead of a webhook's rate at which one more delivery may be sent. */
function slackMs(ratePerS: number): number {
  return BURST_MS - Math.ceil(1_000 / ratePerS);
}

function triggerOf({ type, generation, tries }: PendingDelivery, n: number): Trigger {
  if (type === TEST_TYPE || (generation > 0 && tries === 0)) return 'manual';
  return n === 1 ? 'event' : 'retry';
}
