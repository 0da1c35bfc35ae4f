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
