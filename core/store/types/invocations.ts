/** Invocations as stored. */
import type { Page, PageOf } from './functions.ts';
import type { Owned, Timed } from './rows.ts';

export type InvocationStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';

export type InvocationCause = {
  code: 'WORKLOAD_ERROR' | 'TIMED_OUT' | 'INTERNAL_ERROR';
  message: string;
  name?: string;
  stack?: string;
};

/** In JSON: name, start and end in ms since the runner received the work, 1 if it failed. */
export type InvocationStep = [name: string, startMs: number, endMs: number, failed: 0 | 1];

export type InvocationRow = Owned &
  Timed & {
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
  /** The end of its wait for a runner. */
  waitUntil: number;
  /** Limit of the project's waiting invocations. */
  queueMax: number;
  /** The client's key, and its expiry. */
  idempotency?: IdempotencyKey & { expiresAt: number };
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  at: number;
};

export type InvocationOps = {
  /**
   * Stores the session, the invocation, its event, its job and its idempotency key; or returns the
   * earlier invocation of the key. Throws QUEUE_FULL, IDEMPOTENCY_MISMATCH.
   */
  acceptInvocation(invocation: NewInvocation): InvocationRow;
  getInvocation(wanted: Owned): InvocationRow | undefined;
  /**
   * Newest first, of a function that was not deleted. Without results of more than 64 KiB: a page
   * must fit a message.
   */
  listInvocations(
    wanted: PageOf<{ versionId: string; projectId: string; status: string | undefined }>,
  ): Page<InvocationRow>;
};

export type CancelOps = {
  /**
   * Ends a PENDING invocation. Releases a RUNNING one, which then ends FAILED as cancelled unless
   * its handler returned before. Returns its new state; undefined when there is none.
   */
  cancelInvocation(wanted: Owned & { at: number }): InvocationRow | undefined;
};

/** A client's key. */
export type IdempotencyKey = {
  key: string;
  /** SHA-256 of the request. */
  requestHash: Uint8Array;
};

export type IdempotencyOps = {
  /**
   * The invocation of the key; undefined when there is none, or the key has expired. Throws
   * IDEMPOTENCY_MISMATCH for a key of another request.
   */
  findIdempotent(
    wanted: IdempotencyKey & { projectId: string; at: number },
  ): InvocationRow | undefined;
  /** Removes up to `max` expired keys; returns their number. */
  purgeIdempotencyKeys(purge: { at: number; max: number }): number;
};
