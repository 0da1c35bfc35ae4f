import type { WorkKind } from './leases.ts';

/** What is thrown away with time. */

export type RetentionOps = {
  /**
   * Removes up to `max` rows of events before `before` whose deliveries have all ended, with their
   * deliveries and attempts; then webhooks deleted before it, and listeners that left.
   */
  purgeEvents(purge: { before: number; at: number; max: number }): number;
  /** Webhooks with more than `pendingMax` pending deliveries. */
  backlogs(pendingMax: number): string[];
  /**
   * Skips up to `max` of the webhook's oldest pending deliveries beyond `pendingMax`; how many.
   */
  skipBacklog(skip: { webhookId: string; pendingMax: number; max: number; at: number }): number;
};

/** Invocations, builds and their logs that are thrown away with time. */

/**
 * What ended before `before`; ids bound the search. At most `max` rows are
 * looked at or removed in one operation.
 */
type Purge = { before: number; beforeId: string; max: number };

export type WorkRetentionOps = {
  /** Lines of logs whose invocation or build was made before; how many rows went. */
  purgeLogs(purge: Omit<Purge, 'before'>): number;
  /** Invocations that ended before, with their logs; how many rows went. Their sessions stay. */
  purgeInvocations(purge: Purge & { after?: string }): number;
  /**
   * Builds that ended before, after the one named, with versions that neither are a function's
   * newest nor have an invocation. A build that still has versions stays; so do its blobs.
   */
  purgeBuilds(purge: Purge & { after: string }): {
    removed: number;
    /** Where to go on; undefined at the end. */
    last: string | undefined;
  };
};

/** Sessions that are thrown away with time. */
export type SessionRetentionOps = {
  /**
   * Sessions that ended before `before`, after the one named, oldest first: with their metadata,
   * and counted on in their project's usage. One that something of is kept (an invocation, logs,
   * recordings, files) stays. `beforeId`, an id that was made before, bounds the search; at most
   * `max` are looked at in one operation.
   */
  purgeSessions(purge: { before: number; beforeId: string; after: string; max: number }): {
    removed: number;
    /** Where to go on; undefined at the end. */
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
  /** Deliveries that wait, and that are under way. */
  pending: number;
  inFlight: number;
  /** When the delivery that has waited longest was due; null when none waits. */
  oldestDue: number | null;
  counts: EndCount[];
};

export type MetricOps = {
  /** From now on ends are counted; the first call begins, with nothing counted. */
  metrics(): StoreMetrics;
};
