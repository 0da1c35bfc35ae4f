/** Deliveries and their attempts, as stored. */
import type { AnswerTimes } from '../../delivery/answer-times.ts';
import type { Rule } from '../../delivery/disable.ts';

export type Sender = {
  /** One per gateway. */
  senderId: string;
  /** UUID v7, new at each start: a later instance takes over the deliveries of an earlier one. */
  instanceId: string;
};

export type ClaimWanted = Sender & {
  max: number;
  /** Deliveries of one project that may be in flight at once. */
  perProjectMax: number;
  /** Deliveries a second of one webhook. */
  ratePerS: number;
  at: number;
  /** The timestamp of the signatures, in Unix seconds. */
  signedAtS: number;
  leaseUntil: number;
  /** For the delay of a delivery that was interrupted too often. */
  jitter: number;
};

export type ClaimedRow = {
  deliveryId: number;
  claimSeq: number;
  attemptId: number;
  /** Number of the delivery's attempt, from 1. */
  n: number;
  webhookId: string;
  endpoint: string;
  eventId: string;
  body: Uint8Array;
};

export type Claimed = {
  claims: ClaimedRow[];
  signedAtS: number;
  /** The live secrets of each claimed webhook, newest first. */
  secrets: Record<string, { seq: number; sealed: Uint8Array }[]>;
  /**
   * The next claim can succeed at: a delivery is due, a webhook's pace allows one, or a lease
   * expires; null when no delivery waits.
   */
  nextDue: number | null;
  /** Webhooks that were deleted during an attempt of this sender; reported once. */
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
  /** `unsent`: returned, and no byte was sent. */
  outcome: AttemptOutcome | 'unsent';
  /** HTTP status; 0 when there was none. */
  status: number;
  latencyMs: number;
  error: string;
  response: Uint8Array;
  retryAfterS: number | null;
  /** The receiver requested no further attempt. */
  abortMessage: boolean;
  jitter: number;
};

/** What happened to a webhook on one day, without tests. */
export type DayCounts = {
  /** Attempts with a 2xx answer. */
  delivered: number;
  /** Attempts that failed. */
  failed: number;
  /** Deliveries that were given up, or skipped. */
  lost: number;
  /** Answers by their time; an attempt without an answer in time counts too. */
  answers: AnswerTimes;
};

export type DeliveryOps = {
  /**
   * Claims due deliveries, the least recently served webhook first, and records the start of each
   * attempt. First releases those of expired leases and of earlier instances of this sender.
   */
  claimDeliveries(wanted: ClaimWanted): Claimed;
  /**
   * Records the ends of attempts and decides the next states, then claims due deliveries if `next`
   * is given. A repeated report changes nothing.
   */
  reportAttempts(report: {
    ends: AttemptEnd[];
    at: number;
    rule: Rule;
    next?: ClaimWanted | undefined;
  }): {
    /** Webhooks that the reports disabled. */
    disabled: string[];
    claimed: Claimed | undefined;
  };
  /**
   * Records that core runs. A gap of more than `gapMinMs` is subtracted from all failure streaks.
   */
  beat(beat: { at: number; gapMinMs: number }): { gapMs: number };
  /** The latest time on disk; 0 when there is none. After a start times continue from it. */
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
   * Sends up to `max` skipped or exhausted deliveries again, oldest first. The next batch begins
   * after `last`. Undefined when there is no such webhook.
   */
  recoverDeliveries(recovery: Recovery): { count: number; last: number } | undefined;
  /** An event for this webhook alone; undefined when there is no such webhook. */
  sendTestEvent(wanted: Owned & { eventId: string; at: number }): DeliveryRow | undefined;
};

export type HeardEvent = { seq: number; id: string; type: string; body: Uint8Array };

export type ListenerOps = {
  /** Stores events of the project until then; returns the sequence number of the last event. */
  listen(listener: { projectId: string; until: number }): number;
  /**
   * Events after `after`, oldest first, without tests of webhooks. `isEarly`: another one is stored
   * and cannot be read yet.
   */
  eventsAfter(wanted: { projectId: string; after: number; limit: number }): {
    events: HeardEvent[];
    isEarly: boolean;
  };
};
