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
