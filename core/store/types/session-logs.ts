/** Protocol logs of sessions, as stored. */
import type { Within } from './storage.ts';

export type SessionLogChunk = {
  /** Within its session, from 0. */
  number: number;
  /** zstd of JSON of one SessionLog a line. */
  entries: Uint8Array;
  /** How many entries. */
  count: number;
  /** In bytes, before compression. */
  size: number;
};

export type SessionLogOps = {
  /**
   * Keeps a chunk it has not seen in the log of the lease's session, up to `maxBytes` before
   * compression, and within the project's quota; then nothing more. `lost`: the lease is.
   */
  appendSessionLog(
    wanted: SessionLogChunk & { leaseId: string; maxBytes: number; within?: Within; at: number },
  ): 'kept' | 'full' | 'lost';
  /**
   * From chunk `from` on: about `maxBytes` before compression, and at least one chunk if there is
   * one. `next` is absent at the end, and only there `fullAt` tells when the limit was met.
   */
  readSessionLog(wanted: { sessionId: string; from: number; maxBytes: number }): {
    chunks: SessionLogChunk[];
    next?: number;
    fullAt?: number;
  };
  /** Removes up to `max` chunks from before `before`; how many. */
  purgeSessionLogs(wanted: { before: number; max: number }): number;
};
