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
