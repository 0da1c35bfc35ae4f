/** Idempotency keys as stored. */
import type { InvocationRow } from './invocations.ts';

/** What a client's key stands for. */
export type IdempotencyKey = {
  key: string;
  /** SHA-256 of what is asked for. */
  requestHash: Uint8Array;
};

export type IdempotencyOps = {
  /**
   * The invocation that the key has made; undefined when it has made none, or no longer counts.
   * Throws IDEMPOTENCY_MISMATCH when it was for something else.
   */
  findIdempotent(
    wanted: IdempotencyKey & { projectId: string; at: number },
  ): InvocationRow | undefined;
  /** Removes up to `max` keys that no longer count; how many. */
  purgeIdempotencyKeys(purge: { at: number; max: number }): number;
};
