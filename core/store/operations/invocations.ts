/**
 * Invocations: their acceptance and their transitions (states.ts). Each changes the invocation, its
 * session, and the event with its deliveries in one operation. An ended status never changes. An
 * idempotency key is written with the invocation that it made: a crash leaves both or neither.
 */
import { must } from '../../../proto/common/must.ts';
import { notFound } from '../../../proto/rpc/errors.ts';
import { endOfInvocation } from '../../../proto/sessions/end-reasons.ts';
import { BUILT_IN } from '../../common/built-in.ts';
import type {
  IdempotencyKey,
  IdempotencyOps,
  InvocationOps,
  InvocationRow,
  NewInvocation,
} from '../types/invocations.ts';
import type { InvocationOutcome } from '../types/leases.ts';
import type { EndedSession, Owned } from '../types/rows.ts';
import { type EventStatements, emitTransition, invocationEvent, invocationType } from './events.ts';
import type { Queue } from './queue.ts';
import type { SessionEnd, SessionTransitions } from './sessions/sessions.ts';
import { type InSteps, known, type Read, type Steps, type Transaction } from './steps.ts';
import { CANCELLED, cutReason, keyMismatch } from './texts.ts';

type StoredInvocation = Omit<NewInvocation, 'trigger' | 'idempotency'> & {
  expiresAt: number;
  scheduleId: string | null;
  scheduledFor: number | null;
};

/** After a transition. An event shows no params, which may be large. */
export type ChangedInvocation = Omit<InvocationRow, 'params'>;

export type InvocationStatements = {
  /** Whether the version's function was not deleted. */
  isRunnable(versionId: string): Read<boolean>;
  /** PENDING. */
  insert(invocation: StoredInvocation): void;
  /** Of a function that was not deleted. */
  read(wanted: Owned): Read<InvocationRow | undefined>;
  isPending(id: string): Read<boolean>;
  /** To RUNNING, for its timeout; undefined when it was not PENDING. */
  start(wanted: { id: string; at: number }): Read<ChangedInvocation | undefined>;
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
  }): Read<ChangedInvocation | undefined>;
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
      const counters = queue.countersOf({ kind: 'invocation', projectId });
      const key = idempotency && { ...idempotency, projectId, at };
      const sameKey = key && keys.find(key);
      // the service read the version before this transaction
      const runnable = statements.isRunnable(wanted.versionId);
      const earlier = key && (yield* findIdempotent(keys, statements, key, sameKey));
      if (earlier) return earlier;
      if (!(yield* runnable)) throw notFound('Function', wanted.functionId);
      const expiresAt = at + wanted.timeoutMs;
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      yield* queue.add({ id, kind: 'invocation', projectId, ...place }, counters);
      const session = { keepAlive: false, extensionId: null, timeoutMs: null };
      yield* sessions.open({
        ...made,
        ...session,
        id: sessionId,
        params: sessionParams,
        expiresAt,
      });
      const { scheduleId = null, scheduledFor = null } = trigger ?? {};
      const stored = { ...made, expiresAt, scheduleId, scheduledFor };
      statements.insert(stored);
      if (idempotency) keys.insert({ ...idempotency, projectId, invocationId: id });
      tx.crashPoint('accept-invocation');
      const row = newRow(stored);
      yield* emit('pending', { projectId, at }, () => known(row));
      return row;
    },
  };
}

/** As stored. */
function newRow(stored: StoredInvocation): InvocationRow {
  const { id, projectId, functionId, versionId, sessionId, region, params, at, ...rest } = stored;
  return {
    id,
    projectId,
    functionId,
    versionId,
    sessionId,
    region,
    status: 'PENDING',
    params,
    results: null,
    cause: null,
    timeoutMs: rest.timeoutMs,
    createdAt: at,
    updatedAt: at,
    startedAt: null,
    endedAt: null,
    expiresAt: rest.expiresAt,
    scheduleId: rest.scheduleId,
    scheduledFor: rest.scheduledFor,
  };
}

export type InvocationEnd = {
  id: string;
  projectId: string;
  /** Of its session, if it is known. */
  sessionId?: string | null;
  outcome: InvocationOutcome;
  /** The lease whose runner reported the end; null when core itself ends it. */
  leaseId: string | null;
  sessionStartedAt: number | null;
  /** Of its session, when core itself ends it. */
  late?: Pick<SessionEnd, 'leaseId' | 'isGivenUp'>;
  /** Why its browser ended by itself. */
  browserLoss?: string | undefined;
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
    *start({ id, projectId }: Owned, at: number): Steps<number | undefined> {
      const row = yield* statements.start({ id, at });
      if (!row) return undefined;
      const { sessionId, expiresAt } = row;
      yield* sessions.start({ id: sessionId, projectId, startedAt: at, expiresAt, at });
      yield* emit('running', { projectId, at }, () => known(row));
      return expiresAt;
    },
    /** Returns how its session has ended. */
    *end({ id, projectId, outcome, leaseId, at, ...end }: InvocationEnd): Steps<EndedSession> {
      const isSuccess = outcome.kind === 'success';
      const ending = statements.end({
        id,
        status: isSuccess ? 'COMPLETED' : 'FAILED',
        results: isSuccess ? outcome.results : null,
        cause: isSuccess ? null : JSON.stringify(outcome.cause),
        steps: end.steps ?? null,
        leaseId,
        at,
      });
      const isOpen = (row: ChangedInvocation | undefined) => must(row, 'open invocation of a job');
      tx.later(ending, isOpen);
      tx.crashPoint('end-invocation');
      const sessionId = end.sessionId ?? isOpen(yield* ending).sessionId;
      const session = { id: sessionId, ...sessionEnd(outcome, end.browserLoss) };
      const ofSession = { ...session, startedAt: end.sessionStartedAt };
      yield* sessions.end({ projectId, ...ofSession, ...end.late, at });
      const step = isSuccess ? 'completed' : 'failed';
      yield* emit(step, { projectId, at }, function* () {
        return isOpen(yield* ending);
      });
      tx.wake(`invocation:${id}`);
      return session;
    },
  };
}

/** A one-shot has no event: its caller waits for its answer. */
function emitter(events: EventStatements, tx: Transaction) {
  return (
    step: Parameters<typeof invocationEvent>[0],
    moment: { projectId: string; at: number },
    rowOf: () => Steps<ChangedInvocation>,
  ): Steps<void> => {
    const type = invocationType(step);
    return emitTransition(events, tx, { ...moment, type }, function* () {
      const row = yield* rowOf();
      return row.functionId === BUILT_IN.functionId ? undefined : invocationEvent(step, row);
    });
  };
}

function sessionEnd(
  outcome: InvocationOutcome,
  browserLoss: string | undefined,
): Omit<EndedSession, 'id'> {
  const failure = outcome.kind === 'failure' ? outcome.cause : { code: undefined, message: '' };
  const isCancelled = outcome.kind === 'failure' && outcome.cause === CANCELLED;
  const { status, reason } = endOfInvocation({ ...failure, isCancelled, browserLoss });
  return { status, reason: cutReason(reason) };
}

/** The invocation that the key made. Throws IDEMPOTENCY_MISMATCH. */
function* findIdempotent(
  keys: KeyStatements,
  invocations: { read(wanted: Owned): Read<InvocationRow | undefined> },
  wanted: IdempotencyKey & { projectId: string; at: number },
  reading = keys.find(wanted),
): Steps<InvocationRow | undefined> {
  const { projectId, requestHash } = wanted;
  const found = yield* reading;
  if (!found) return undefined;
  if (Buffer.compare(found.requestHash, requestHash) !== 0) throw keyMismatch();
  const id = found.invocationId;
  return must(yield* invocations.read({ id, projectId }), 'invocation of a key');
}
