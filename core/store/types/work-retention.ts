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
