/** What core's clock takes along when it is set. */

export type TimeOps = {
  /**
   * Core's clock is set: what was `from` is `to`. What is due keeps the time that is left, what has
   * begun the time that has passed, and nothing that has happened lies in the future.
   */
  moveTimes(step: { from: number; to: number }): void;
};
