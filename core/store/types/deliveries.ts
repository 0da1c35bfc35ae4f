/** Deliveries and their attempts, as stored. */
import type { Rule } from '../../delivery/disable.ts';

export type Sender = {
  /** One per gateway. */
  senderId: string;
  /** UUID v7, new at every start of it: the later one takes over what the earlier one held. */
  instanceId: string;
};

export type ClaimWanted = Sender & {
  max: number;
  /** Deliveries of one project that may be in flight at once. */
  perProjectMax: number;
  /** Deliveries a second of one webhook. */
  ratePerS: number;
  at: number;
  leaseUntil: number;
  /** For the wait of a delivery that was interrupted too often. */
  jitter: number;
};

export type ClaimedRow = {
  deliveryId: number;
  claimSeq: number;
  attemptId: number;
  /** Counts the delivery's attempts from 1. */
  n: number;
  webhookId: string;
  endpoint: string;
  eventId: string;
  body: Uint8Array;
};

export type Claimed = {
  claims: ClaimedRow[];
  /** The live secrets of each webhook claimed for, newest first. */
  secrets: Record<string, { seq: number; sealed: Uint8Array }[]>;
  /**
   * When to look again: a delivery comes due, the pace of a webhook lets one through, or a lease
   * lapses; null when nothing waits.
   */
  nextDue: number | null;
  /** Webhooks deleted since with an attempt of this sender in flight; told once. */
  gone: string[];
};

export type AttemptOutcome =
  | 'ok'
  | 'http'
  | 'timeout'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'blocked'
  | 'reset'
  | 'protocol';

export type AttemptEnd = {
  deliveryId: number;
  claimSeq: number;
  attemptId: number;
  /** `unsent`: handed back, nothing left this machine. */
  outcome: AttemptOutcome | 'unsent';
  /** HTTP status; 0 when there was none. */
  status: number;
  latencyMs: number;
  error: string;
  response: Uint8Array;
  retryAfterS: number | null;
  /** The receiver asked not to try again. */
  abortMessage: boolean;
  jitter: number;
};

export type DeliveryOps = {
  /**
   * Takes what is due, the least recently served webhook first, and records each attempt as
   * started. First gives back what lapsed leases and earlier instances of this sender held.
   */
  claimDeliveries(wanted: ClaimWanted): Claimed;
  /**
   * Records how attempts ended and decides what follows, then takes what is due when `next` says
   * so. A report that was taken already changes nothing.
   */
  reportAttempts(report: {
    ends: AttemptEnd[];
    at: number;
    rule: Rule;
    next?: ClaimWanted | undefined;
  }): {
    /** Webhooks that this disabled. */
    disabled: string[];
    claimed: Claimed | undefined;
  };
  /**
   * Says that core runs. When it did not for more than `gapMinMs`, that time is taken out of all
   * streaks of failure.
   */
  beat(beat: { at: number; gapMinMs: number }): { gapMs: number };
  /** The latest time on disk; 0 when there is none. Times go on from there after a start. */
  lastTime(): number;
};

export type DeliveryState =
  | 'pending'
  | 'in_flight'
  | 'delivered'
  | 'exhausted'
  | 'skipped'
  | 'cancelled';

export type DeliveryRow = {
  /** Of the event: unique within its webhook. */
  id: string;
  webhookId: string;
  eventType: string;
  resourceId: string;
  state: DeliveryState;
  reason: string | null;
  tries: number;
  due: number | null;
  createdAt: number;
  doneAt: number | null;
};

export type AttemptRow = {
  n: number;
  trigger: 'event' | 'retry' | 'manual';
  endpoint: string;
  startedAt: number;
  endedAt: number | null;
  outcome: AttemptOutcome | 'interrupted' | null;
  status: number | null;
  latencyMs: number | null;
  error: string | null;
  response: Uint8Array | null;
};

/** A webhook of a project. */
type Owned = { webhookId: string; projectId: string };

export type DeliveriesWanted = Owned & {
  state: DeliveryState | undefined;
  eventType: string | undefined;
  resourceId: string | undefined;
  before: string | undefined;
  limit: number;
};

export type DeliveryViewOps = {
  /**
   * Newest first, from behind the delivery `before`. Undefined when there is no such webhook,
   * `unknown-cursor` when it has no delivery `before`.
   */
  listDeliveries(wanted: DeliveriesWanted): DeliveryRow[] | 'unknown-cursor' | undefined;
  /** With its attempts, oldest first. */
  getDelivery(
    wanted: Owned & { id: string },
  ): { delivery: DeliveryRow; attempts: AttemptRow[] } | undefined;
};

export type Recovery = Owned & {
  since: number;
  until: number;
  /** In rows, per operation. */
  max: number;
  /** `last` of the batch before; 0 at first. */
  after: number;
  at: number;
};

export type RedeliveryOps = {
  /** The same bytes, due at once, with the whole schedule. */
  redeliver(wanted: Owned & { id: string; at: number }): DeliveryRow | 'not-ended' | undefined;
  /**
   * Replays up to `max` that were skipped or exhausted, oldest first. `last` is where the next
   * batch goes on. Undefined when there is no such webhook.
   */
  recoverDeliveries(recovery: Recovery): { count: number; last: number } | undefined;
  /** An event for this webhook alone; undefined when there is no such webhook. */
  sendTestEvent(wanted: Owned & { eventId: string; at: number }): DeliveryRow | undefined;
};

/** Those who read a project's events as they happen. */

export type HeardEvent = { seq: number; id: string; type: string; body: Uint8Array };

export type ListenerOps = {
  /** Events of the project are kept until then; answers the place of now in their order. */
  listen(listener: { projectId: string; until: number }): number;
  /** Events behind `after`, oldest first; tests of webhooks are none. */
  eventsAfter(wanted: { projectId: string; after: number; limit: number }): HeardEvent[];
};
