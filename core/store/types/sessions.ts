import type { Within } from './files.ts';
import type { Holder } from './leases.ts';

/** Sessions, as stored. */

export type SessionStatus = 'PENDING' | 'RUNNING' | 'ERROR' | 'TIMED_OUT' | 'COMPLETED';

export type SessionRow = {
  id: string;
  projectId: string;
  status: SessionStatus;
  region: string;
  contextId: string | null;
  keepAlive: boolean;
  proxyBytes: number;
  /** JSON object. */
  userMetadata: string | null;
  /** JSON object: how its browser is set up. */
  params: string;
  /** Its end was asked for: it takes nobody any more. */
  isReleased: boolean;
  createdAt: number;
  updatedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
  /** Why it ended, one sentence. */
  endReason: string | null;
};

/** Without what only a runner needs, which is up to 64 KiB of each, and what its job tells. */
export type ListedSession = Omit<SessionRow, 'params' | 'isReleased'>;

export type SessionOps = {
  getSession(wanted: { id: string; projectId: string }): SessionRow | undefined;
  /** Newest first. */
  listSessions(wanted: {
    projectId: string;
    status: SessionStatus | undefined;
    /** Only those whose metadata has that text under these keys. */
    metadata?: { keys: string[]; value: string } | undefined;
    max: number;
  }): ListedSession[];
};

export type NewUserSession = {
  id: string;
  projectId: string;
  region: string;
  contextId: string | null;
  extensionId: string | null;
  keepAlive: boolean;
  /** JSON object. */
  userMetadata: string | null;
  /** JSON object: how its browser is set up. */
  params: string;
  /** From its start; undefined for the project's default. */
  timeoutMs: number | undefined;
  /** When its waiting for a runner ends. */
  waitUntil: number;
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  at: number;
};

/** `busy`: it ends with its invocation and not before. */
export type Released = { outcome: 'released'; session: SessionRow } | { outcome: 'busy' };

export type LocatedSession = {
  projectId: string;
  status: SessionStatus;
  /** Of the runner that has it, where that takes connections. */
  address: string | null;
  /** A user asked for its end: it takes nobody any more. */
  isReleased: boolean;
};

export type SessionLifeOps = {
  /**
   * The session and its place in the queue. Throws CONCURRENCY_LIMIT when as many as the project
   * may have live and are not released.
   */
  createSession(session: NewUserSession): SessionRow;
  /**
   * One that waits ends at once; one that runs frees its slot and is told to its runner; one that
   * has ended stays as it is. Undefined when there is none.
   */
  releaseSession(wanted: { id: string; projectId: string; at: number }): Released | undefined;
  /** Of any project: whoever asks has its signing key. */
  locateSession(id: string): LocatedSession | undefined;
  /** To RUNNING, once; its time begins. True again when repeated; false when the lease is lost. */
  startSession(wanted: { leaseId: string; startedAt: number; at: number }): boolean;
  /** Session, job and counters. True again when repeated; false when the lease was lost. */
  completeSession(wanted: {
    leaseId: string;
    status: 'COMPLETED' | 'TIMED_OUT' | 'ERROR';
    reason: string;
    proxyBytes: number;
    at: number;
  }): boolean;
  /** Leases of that instance whose session was released. LEASE_LOST when superseded. */
  releasedLeases(holder: Holder): string[];
};

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
  purgeSessionLogs(wanted: { before: number; at: number; max: number }): number;
};
