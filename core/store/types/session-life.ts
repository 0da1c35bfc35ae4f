/** The life of a session that a user started: created, started, released, ended. */
import type { Holder } from './leases.ts';
import type { SessionRow, SessionStatus } from './sessions.ts';

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
