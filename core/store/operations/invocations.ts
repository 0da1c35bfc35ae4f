/**
 * Invocations: their acceptance and their transitions (states.ts). Each changes the invocation, its
 * session, and the event with its deliveries in one operation. An ended status never changes. An
 * idempotency key is written with the invocation that it made: a crash leaves both or neither.
 */
import { must } from '../../../proto/common/must.ts';
import { notFound } from '../../../proto/rpc/errors.ts';
import { BUILT_IN } from '../../common/built-in.ts';
import type {
  IdempotencyKey,
  IdempotencyOps,
  InvocationOps,
  InvocationRow,
  NewInvocation,
} from '../types/invocations.ts';
import type { InvocationOutcome } from '../types/leases.ts';
import type { Owned } from '../types/rows.ts';
import type { SessionStatus } from '../types/sessions.ts';
import { type EventStatements, emitEvent, invocationEvent } from './events.ts';
import type { Queue } from './queue.ts';
import type { SessionTransitions } from './sessions/sessions.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';
import { keyMismatch } from './texts.ts';

export type InvocationStatements = {
  /** Whether the version's function was not deleted. */
  isRunnable(versionId: string): Read<boolean>;
  /** PENDING. */
  insert(
    invocation: Omit<NewInvocation, 'trigger'> & {
      expiresAt: number;
      scheduleId: string | null;
      scheduledFor: number | null;
    },
  ): Read<InvocationRow>;
  /** Of a function that was not deleted. */
  read(wanted: Owned): Read<InvocationRow | undefined>;
  isPending(id: string): Read<boolean>;
  /** To RUNNING, for its timeout; undefined when it was not PENDING. */
  start(wanted: { id: string; at: number }): Read<InvocationRow | undefined>;
  /** Undefined when it has ended. */
  end(wanted: {
    id: string;
    status: 'COMPLETED' | 'FAILED';
    results: string | null;
    cause: string | null;
    /** JSON. */
    steps: string | null;
    leaseId: string | null;
    at: number;
  }): Read<InvocationRow | undefined>;
  endedBy(leaseId: string): Read<boolean>;
};

export type KeyStatements = {
  /** Undefined when it has expired, or its invocation's function was deleted. */
  find(wanted: {
    projectId: string;
    key: string;
    at: number;
  }): Read<{ requestHash: Uint8Array; invocationId: string } | undefined>;
  /** Replaces one that `find` does not return. */
  insert(
    made: IdempotencyKey & { projectId: string; invocationId: string; expiresAt: number },
  ): void;
};

type InvocationDeps = {
  statements: InvocationStatements;
  keys: KeyStatements;
  events: EventStatements;
  sessions: SessionTransitions;
};

export function acceptance(
  { statements, keys, events, sessions, queue }: InvocationDeps & { queue: Queue },
  tx: Transaction,
): InSteps<Pick<InvocationOps, 'acceptInvocation'> & Pick<IdempotencyOps, 'findIdempotent'>> {
  const emit = emitter(events, tx);
  return {
    findIdempotent: (wanted) => findIdempotent(keys, statements, wanted),
    *acceptInvocation(wanted) {
      const { idempotency, trigger, ...made } = wanted;
      const { id, projectId, sessionId, sessionParams, waitUntil, at } = made;
      const { queueMax, traceparent } = made;
      if (idempotency) {
        const key = { ...idempotency, projectId, at };
        const earlier = yield* findIdempotent(keys, statements, key);
        if (earlier) return earlier;
      }
      // the service read the version before this transaction
      if (!(yield* statements.isRunnable(wanted.versionId))) {
        throw notFound('Function', wanted.functionId);
      }
      const expiresAt = at + wanted.timeoutMs;
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      yield* queue.add({ id, kind: 'invocation', projectId, ...place });
      const session = { keepAlive: false, extensionId: null, timeoutMs: null };
      yield* sessions.open({
        ...made,
        ...session,
        id: sessionId,
        params: sessionParams,
        expiresAt,
      });
      const { scheduleId = null, scheduledFor = null } = trigger ?? {};
      const row = yield* statements.insert({ ...made, expiresAt, scheduleId, scheduledFor });
      if (idempotency) keys.insert({ ...idempotency, projectId, invocationId: id });
      tx.crashPoint('accept-invocation');
      yield* emit('pending', row);
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
  /** JSON, of a runner's report. */
  steps?: string | undefined;
  at: number;
};

export type InvocationTransitions = ReturnType<typeof invocationTransitions>;

export function invocationTransitions(
  { statements, events, sessions }: Omit<InvocationDeps, 'keys'>,
  tx: Transaction,
) {
  const emit = emitter(events, tx);
  return {
    isPending: statements.isPending,
    endedBy: statements.endedBy,
    /** To RUNNING; returns its expiry. Undefined when it was not PENDING. */
    *start(id: string, at: number): Steps<number | undefined> {
      const row = yield* statements.start({ id, at });
      if (!row) return undefined;
      yield* sessions.start({ id: row.sessionId, at, expiresAt: row.expiresAt });
      yield* emit('running', row);
      return row.expiresAt;
    },
    *end({ id, outcome, leaseId, sessionStartedAt, steps, at }: InvocationEnd): Steps<void> {
      const isSuccess = outcome.kind === 'success';
      const ended = yield* statements.end({
        id,
        status: isSuccess ? 'COMPLETED' : 'FAILED',
        results: isSuccess ? outcome.results : null,
        cause: isSuccess ? null : JSON.stringify(outcome.cause),
        steps: steps ?? null,
        leaseId,
        at,
      });
      const row = must(ended, 'open invocation of a job');
      tx.crashPoint('end-invocation');
      const status = sessionEnd(outcome);
      yield* sessions.end({ id: row.sessionId, status, startedAt: sessionStartedAt, at });
      yield* emit(isSuccess ? 'completed' : 'failed', row);
      tx.wake(`invocation:${id}`);
    },
  };
}

/** A one-shot has no event: its caller waits for its answer. */
function emitter(events: EventStatements, tx: Transaction) {
  return function* (step: Parameters<typeof invocationEvent>[0], row: InvocationRow): Steps<void> {
    if (row.functionId !== BUILT_IN.functionId) {
      yield* emitEvent(events, tx, invocationEvent(step, row));
    }
  };
}

/** A handler that throws is no failure of its browser. */
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

/** The invocation that the key made. Throws IDEMPOTENCY_MISMATCH. */
function* findIdempotent(
  keys: KeyStatements,
  invocations: { read(wanted: Owned): Read<InvocationRow | undefined> },
  wanted: IdempotencyKey & { projectId: string; at: number },
): Steps<InvocationRow | undefined> {
  const { projectId, key, requestHash, at } = wanted;
  const found = yield* keys.find({ projectId, key, at });
  if (!found) return undefined;
  if (Buffer.compare(found.requestHash, requestHash) !== 0) throw keyMismatch();
  const id = found.invocationId;
  return must(yield* invocations.read({ id, projectId }), 'invocation of a key');
}
