/** Invocations as stored. */
import type { Page } from './functions.ts';

export type InvocationStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';

export type InvocationCause = {
  code: 'WORKLOAD_ERROR' | 'TIMED_OUT' | 'INTERNAL_ERROR';
  message: string;
  name?: string;
  stack?: string;
};

export type InvocationRow = {
  id: string;
  projectId: string;
  functionId: string;
  versionId: string;
  sessionId: string;
  region: string;
  status: InvocationStatus;
  /** JSON object. */
  params: string;
  /** JSON; null when the handler returned nothing. */
  results: string | null;
  /** JSON of an InvocationCause. */
  cause: string | null;
  timeoutMs: number;
  createdAt: number;
  updatedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
};

export type NewInvocation = {
  id: string;
  sessionId: string;
  projectId: string;
  functionId: string;
  versionId: string;
  region: string;
  /** JSON object. */
  params: string;
  /** JSON object: the session's params, merged. */
  sessionParams: string;
  contextId: string | null;
  /** JSON object. */
  userMetadata: string | null;
  timeoutMs: number;
  /** When its waiting ends. */
  waitUntil: number;
  /** Invocations that may wait in the project. */
  queueMax: number;
  /** What its client calls it, and until when. */
  idempotency?: IdempotencyKey & { expiresAt: number };
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  at: number;
};

export type InvocationOps = {
  /**
   * The session, the invocation, its pending event, its place in the queue and its idempotency key;
   * or the invocation that the key has made before. Throws QUEUE_FULL, IDEMPOTENCY_MISMATCH.
   */
  acceptInvocation(invocation: NewInvocation): InvocationRow;
  getInvocation(wanted: { id: string; projectId: string }): InvocationRow | undefined;
  /** Newest first. Results of more than 64 KiB are left out: a page must fit a message. */
  listInvocations(wanted: {
    versionId: string;
    projectId: string;
    status: string | undefined;
    offset: number;
    limit: number;
  }): Page<InvocationRow>;
};

export type CancelOps = {
  /**
   * Ends one that waits; releases one that runs, which then ends FAILED as cancelled unless its
   * handler returned before; gives it as it then is. Undefined for one that is not there.
   */
  cancelInvocation(wanted: {
    id: string;
    projectId: string;
    at: number;
  }): InvocationRow | undefined;
};

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
