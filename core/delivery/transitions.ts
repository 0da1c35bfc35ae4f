/**
 * Where a delivery goes when its attempt ended without success: pending again, exhausted, or
 * nowhere, because its webhook no longer wants it. Pure. proto/spec/webhooks.md 4.
 */
import { delayMs, type Failure } from './retry-schedule.ts';

/** The type of the event that a test sends; no webhook subscribes to it. Ours. */
export const TEST_TYPE = 'webhooks.test';
/**
 * Ours: a delivery that ends its sender this often counts as failed once, so that it drains like
 * any other.
 */
const INTERRUPTED_MAX = 5;

/** The webhook's state, for a delivery to it. Flags as SQLite has them. */
export type SubscriptionState = {
  status: 'enabled' | 'disabled' | 'deleted';
  isSubscribed: 0 | 1;
  /** A person asked for it again, so it goes out whether or not the webhook is enabled. */
  isRedelivery: 0 | 1;
  /** Likewise; and it is tried once. */
  isTest: 0 | 1;
};

export type Next = {
  state: 'pending' | 'exhausted' | 'skipped' | 'cancelled';
  reason: string | null;
  due: number | null;
  /** Failed attempts since the last redelivery. */
  tries: number;
};

type Failed = Failure & { jitter: number; abortMessage: boolean };

/** After the failure that makes `tries` of them. */
export function afterFailure(
  failed: Failed,
  tries: number,
  at: number,
  standing: SubscriptionState,
): Next {
  const over = { state: 'exhausted', due: null, tries } as const;
  if (failed.abortMessage) return { ...over, reason: 'aborted_by_receiver' };
  const delay = standing.isTest ? null : delayMs(tries, failed, failed.jitter);
  if (delay === null) return { ...over, reason: 'attempts_failed' };
  return unlessEnded({ state: 'pending', reason: null, due: at + delay, tries }, standing);
}

/** After an attempt that nobody saw the end of. `interrupted` counts it too. */
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

/** At once, the attempt not counted. */
export function again(tries: number, at: number, standing: SubscriptionState): Next {
  return unlessEnded({ state: 'pending', reason: null, due: at, tries }, standing);
}

/** A delivery does not wait again for a webhook that is disabled, or no longer wants its type. */
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
