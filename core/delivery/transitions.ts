/**
 * The next state of a delivery whose attempt ended without success: pending again, exhausted, or
 * cancelled or skipped because of its webhook. Pure. proto/spec/webhooks.md 4.
 */
import { delayMs, type Failure } from './retry-schedule.ts';

/** The type of the event that a test sends; no webhook subscribes to it. Ours. */
export const TEST_TYPE = 'webhooks.test';
/**
 * Ours: a delivery that crashes its sender this often counts as failed once, so that it is
 * exhausted like any other.
 */
const INTERRUPTED_MAX = 5;

/** The webhook's state, for a delivery to it. Flags as SQLite has them. */
export type SubscriptionState = {
  status: 'enabled' | 'disabled' | 'deleted';
  isSubscribed: 0 | 1;
  /** Requested by a user: sent whether or not the webhook is enabled. */
  isRedelivery: 0 | 1;
  /** Likewise; tried once. */
  isTest: 0 | 1;
};

export type Next = {
  state: 'pending' | 'exhausted' | 'skipped' | 'cancelled';
  reason: string | null;
  due: number | null;
  /** Failed attempts since the last redelivery. */
  tries: number;
};

/** Whether the delivery ended without its event: given up, or skipped. */
export function isLost({ state }: Next): boolean {
  return state === 'exhausted' || state === 'skipped';
}

type Failed = Failure & { jitter: number; abortMessage: boolean };

/** After the failure number `tries`. */
export function afterFailure(
  failed: Failed,
  tries: number,
  at: number,
  subscription: SubscriptionState,
): Next {
  const over = { state: 'exhausted', due: null, tries } as const;
  if (failed.abortMessage) return { ...over, reason: 'aborted_by_receiver' };
  const delay = subscription.isTest ? null : delayMs(tries, failed, failed.jitter);
  if (delay === null) return { ...over, reason: 'attempts_failed' };
  return unlessEnded({ state: 'pending', reason: null, due: at + delay, tries }, subscription);
}

/** After an attempt with an unknown end. `interrupted` includes it. */
export function afterInterruption(
  lost: SubscriptionState & { tries: number; interrupted: number },
  { at, jitter }: { at: number; jitter: number },
): Next & { interrupted: number } {
  const { tries, interrupted } = lost;
  if (interrupted < INTERRUPTED_MAX) return { ...again(tries, at, lost), interrupted };
  const failed = { outcome: 'interrupted', status: 0, retryAfterS: null };
  const next = afterFailure({ ...failed, jitter, abortMessage: false }, tries + 1, at, lost);
  const reason = next.state === 'exhausted' ? 'interrupted' : next.reason;
  return { ...next, reason, interrupted: 0 };
}

/** At once, without counting the attempt. */
export function again(tries: number, at: number, subscription: SubscriptionState): Next {
  return unlessEnded({ state: 'pending', reason: null, due: at, tries }, subscription);
}

/** A delivery is not retried for a webhook that is disabled or no longer subscribes to its type. */
function unlessEnded(
  next: Next,
  { status, isSubscribed, isRedelivery, isTest }: SubscriptionState,
): Next {
  const ended = { due: null, tries: next.tries };
  if (status === 'deleted') return { ...ended, state: 'cancelled', reason: 'webhook_deleted' };
  if (isRedelivery || isTest) return next;
  if (!isSubscribed) return { ...ended, state: 'cancelled', reason: 'unsubscribed' };
  if (status === 'disabled') return { ...ended, state: 'skipped', reason: 'endpoint_disabled' };
  return next;
}
