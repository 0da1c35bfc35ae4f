/**
 * Invocations: their acceptance and their transitions (states.ts). Each changes the invocation, its
 * session, and the event with its deliveries in one operation. An ended status never changes.
 */
import { must } from '../../../proto/common/must.ts';
import type { InvocationOps, InvocationRow, NewInvocation } from '../types/invocations.ts';
import type { InvocationOutcome } from '../types/leases.ts';
import type { SessionStatus } from '../types/sessions.ts';
import { type EventStatements, emitEvent, invocationEvent } from './events.ts';
import { findIdempotent, type KeyStatements } from './idempotency.ts';
import type { Queue } from './queue.ts';
import type { SessionTransitions } from './sessions.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';

export type InvocationStatements = {
  /** PENDING. */
  insert(invocation: NewInvocation & { expiresAt: number }): Read<InvocationRow>;
  read(wanted: { id: string; projectId: string }): Read<InvocationRow | undefined>;
  isPending(id: string): Read<boolean>;
  /** To RUNNING, for its timeout; undefined when it was not PENDING. */
  start(id: string, at: number): Read<InvocationRow | undefined>;
  /** Undefined when it has ended. */
  end(wanted: {
    id: string;
    status: 'COMPLETED' | 'FAILED';
    results: string | null;
    cause: string | null;
    leaseId: string | null;
    at: number;
  }): Read<InvocationRow | undefined>;
  endedBy(leaseId: string): Read<boolean>;
};

type Parts = {
  statements: InvocationStatements;
  keys: KeyStatements;
  events: EventStatements;
  sessions: SessionTransitions;
};

export function acceptance(
  { statements, keys, events, sessions, queue }: Parts & { queue: Queue },
  tx: Transaction,
): InSteps<Pick<InvocationOps, 'acceptInvocation'>> {
  return {
    *acceptInvocation(wanted) {
      const { idempotency, ...made } = wanted;
      const { id, projectId, sessionId, sessionParams, waitUntil, at } = made;
      const { queueMax, traceparent } = made;
      if (idempotency) {
        const key = { ...idempotency, projectId, at };
        const earlier = yield* findIdempotent(keys, statements, key);
        if (earlier) return earlier;
      }
      const expiresAt = at + wanted.timeoutMs;
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      yield* queue.add({ id, kind: 'invocation', projectId, ...place });
      const session = { keepAlive: false, extensionId: null, timeoutMs: null };
      sessions.open({ ...made, ...session, id: sessionId, params: sessionParams, expiresAt });
      const row = yield* statements.insert({ ...made, expiresAt });
      if (idempotency) keys.insert({ ...idempotency, projectId, invocationId: id });
      tx.crashPoint('accept-invocation');
      yield* emitEvent(events, tx, invocationEvent('pending', row));
      return row;
    },
  };
}

export type InvocationEnd = {
  id: string;
  outcome: InvocationOutcome;
  /** The lease whose runner reported the end; null when core itself ends it. */
  leaseId: string | null;
  sessionStartedAt: number | null;
  at: number;
};

export type InvocationTransitions = ReturnType<typeof invocationTransitions>;

export function invocationTransitions(
  { statements, events, sessions }: Omit<Parts, 'keys'>,
  tx: Transaction,
) {
  return {
    isPending: statements.isPending,
    /** To RUNNING; gives when its time is over. Undefined when it was not PENDING. */
    *start(id: string, at: number): Steps<number | undefined> {
      const row = yield* statements.start(id, at);
      if (!row) return undefined;
      yield* sessions.start({ id: row.sessionId, at, expiresAt: row.expiresAt });
      yield* emitEvent(events, tx, invocationEvent('running', row));
      return row.expiresAt;
    },
    *end({ id, outcome, leaseId, sessionStartedAt, at }: InvocationEnd): Steps<void> {
      const isSuccess = outcome.kind === 'success';
      const ended = yield* statements.end({
        id,
        status: isSuccess ? 'COMPLETED' : 'FAILED',
        results: isSuccess ? outcome.results : null,
        cause: isSuccess ? null : JSON.stringify(outcome.cause),
        leaseId,
        at,
      });
      const row = must(ended, 'open invocation of a job');
      tx.crashPoint('end-invocation');
      const status = sessionEnd(outcome);
      sessions.end({ id: row.sessionId, status, startedAt: sessionStartedAt, at });
      yield* emitEvent(events, tx, invocationEvent(isSuccess ? 'completed' : 'failed', row));
      tx.wake(`invocation:${id}`);
    },
  };
}

/** A handler that throws does not make its browser a broken one. */
function sessionEnd(outcome: InvocationOutcome): SessionStatus {
  if (outcome.kind === 'success') return 'COMPLETED';
  switch (outcome.cause.code) {
    case 'WORKLOAD_ERROR':
      return 'COMPLETED';
    case 'TIMED_OUT':
      return 'TIMED_OUT';
    case 'INTERNAL_ERROR':
      return 'ERROR';
  }
}
