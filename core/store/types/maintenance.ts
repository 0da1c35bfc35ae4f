import type { WorkKind } from './leases.ts';

/** Retention, metrics, and the times of stored rows. */

export type RetentionOps = {
  /**
   * Removes up to `max` rows: events before `before` without open deliveries, with their deliveries
   * and attempts; then webhooks deleted before it, and expired listeners.
   */
  purgeEvents(purge: { before: number; at: number; max: number }): number;
  /** Webhooks with more than `pendingMax` pending deliveries. */
  backlogs(pendingMax: number): string[];
  /**
   * Skips up to `max` of the webhook's oldest pending deliveries beyond `pendingMax`; returns their
   * number.
   */
  skipBacklog(skip: { webhookId: string; pendingMax: number; max: number; at: number }): number;
};

/**
 * Resources that ended before `before`; ids bound the search. One operation reads or removes at
 * most `max` rows.
 */
export type Purge = { before: number; beforeId: string; max: number };

export type WorkRetentionOps = {
  /** Log lines of invocations and builds created before; returns the number of rows. */
  purgeLogs(purge: Omit<Purge, 'before'>): number;
  /** Ended invocations with their logs, without their sessions; returns the number of rows. */
  purgeInvocations(purge: Purge & { after?: string }): number;
  /**
   * Ended builds behind `after` with their logs, and versions that are not their function's newest
   * and have no invocation. A build that still has a version stays, with its blobs.
   */
  purgeBuilds(purge: Purge & { after: string }): {
    removed: number;
    /** Continue after this id; undefined at the end. */
    last: string | undefined;
  };
};

export type SessionRetentionOps = {
  /**
   * Sessions that ended before `before`, behind `after`, oldest first, with their metadata. Their
   * project's usage still includes them. A session with an invocation, logs, recordings or files
   * stays. `beforeId` bounds the search; one operation reads at most `max`.
   */
  purgeSessions(purge: { before: number; beforeId: string; after: string; max: number }): {
    removed: number;
    /** Continue after this id; undefined at the end. */
    last: string | undefined;
  };
};

/** Counted since the database was opened. */
export type EndCount = {
  what: 'session' | 'delivery' | 'interrupted';
  labels: string[];
  count: number;
};

export type StoreMetrics = {
  work: { kind: WorkKind; waiting: number; running: number }[];
  webhooks: { status: string; count: number }[];
  /** Deliveries that wait, and that are in flight. */
  pending: number;
  inFlight: number;
  /** The earliest due time of a waiting delivery; null when none waits. */
  oldestDue: number | null;
  counts: EndCount[];
};

export type MetricOps = {
  /** The first call starts the counting of ends, at zero. */
  metrics(): StoreMetrics;
};

export type TimeOps = {
  /**
   * Core's clock is set: what was `from` is `to`. What is due keeps the time that is left, what has
   * begun the time that has passed, and nothing that has happened lies in the future.
   */
  moveTimes(step: { from: number; to: number }): void;
};
