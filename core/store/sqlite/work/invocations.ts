/**
 * Invocations in SQLite: PENDING -> RUNNING -> COMPLETED | FAILED, and PENDING -> FAILED. Each move
 * changes the invocation, its session and the event with its deliveries in one operation; a status
 * that has ended never moves again.
 */
import { must } from '../../../../proto/common/must.ts';
import { BODY_MAX_BYTES } from '../../../delivery/envelope.ts';
import type { InvocationOps, InvocationRow } from '../../types/invocations.ts';
import type { InvocationOutcome } from '../../types/leases.ts';
import type { SessionStatus } from '../../types/sessions.ts';
import { preparedOnce, type Tx } from '../engine/transaction.ts';
import { emitEvent } from '../webhooks/events.ts';
import { idempotencyKeys } from './idempotency.ts';
import { INVOCATION_COLUMNS, invocationReader, LISTED_COLUMNS } from './invocation-rows.ts';
import { queueOf } from './queue.ts';
import { sessionMoves } from './sessions.ts';

export function invocationOps(tx: Tx): InvocationOps {
  const { db, crashPoint } = tx;
  const sessions = sessionMoves(tx);
  const queue = queueOf(tx);
  const keys = idempotencyKeys(tx);
  const insert = db.prepare<[object], InvocationRow>(`
    INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status,
      params, timeout_ms, created_at, updated_at, expires_at)
    VALUES (@id, @projectId, @functionId, @versionId, @sessionId, @region, 'PENDING',
      @params, @timeoutMs, @at, @at, @expiresAt)
    RETURNING ${INVOCATION_COLUMNS}`);
  const read = invocationReader(tx);
  const matching = `version_id = @versionId AND project_id = @projectId
    AND (@status IS NULL OR status = @status)`; // index invocations_by_version
  const page = db.prepare<[object], InvocationRow>(`
    SELECT ${LISTED_COLUMNS} FROM invocations WHERE ${matching}
    ORDER BY id DESC LIMIT @limit OFFSET @offset`);
  const total = db
    .prepare<[object], number>(`SELECT COUNT(*) FROM invocations WHERE ${matching}`)
    .pluck();

  return {
    acceptInvocation(wanted) {
      const { idempotency, ...made } = wanted;
      const { id, projectId, sessionId, sessionParams, waitUntil, at } = made;
      const { queueMax, traceparent } = made;
      const earlier = idempotency && keys.find({ ...idempotency, projectId, at });
      if (earlier) return earlier;
      const expiresAt = at + wanted.timeoutMs;
      const place = { expiresAt: waitUntil, queueMax, traceparent, at };
      queue.add({ id, kind: 'invocation', projectId, ...place });
      const session = { keepAlive: 0, extensionId: null, timeoutMs: null } as const;
      sessions.open({ ...made, ...session, id: sessionId, params: sessionParams, expiresAt });
      const row = must(insert.get({ ...made, expiresAt }), 'returned row');
      if (idempotency) keys.keep({ ...idempotency, projectId, at, invocationId: id });
      crashPoint('accept-invocation');
      emit(tx, 'pending', row);
      return row;
    },
    getInvocation: read,
    listInvocations(wanted) {
      const filter = { ...wanted, status: wanted.status ?? null };
      return { rows: page.all(filter), total: total.get(filter) ?? 0 };
    },
  };
}

/** What happens to an invocation inside a larger operation. */
export type InvocationMoves = {
  isPending(id: string): boolean;
  /** To RUNNING; gives when its time is over. Undefined when it was not PENDING. */
  start(id: string, at: number): number | undefined;
  end(wanted: InvocationEnd): void;
};

export type InvocationEnd = {
  id: string;
  outcome: InvocationOutcome;
  /** The lease whose runner said so; null when core itself ends it. */
  leaseId: string | null;
  sessionStartedAt: number | null;
  at: number;
};

export const invocationMoves = preparedOnce((tx: Tx): InvocationMoves => {
  const { db, crashPoint } = tx;
  const sessions = sessionMoves(tx);
  const pending = db.prepare<[string]>(
    `SELECT 1 FROM invocations WHERE id = ? AND status = 'PENDING'`,
  );
  const start = db.prepare<[object], InvocationRow>(`
    UPDATE invocations SET status = 'RUNNING', started_at = @at, updated_at = @at,
      expires_at = @at + timeout_ms
    WHERE id = @id AND status = 'PENDING'
    RETURNING ${INVOCATION_COLUMNS}`);
  const end = db.prepare<[object], InvocationRow>(`
    UPDATE invocations SET status = @status, results = @results, cause = @cause,
      ended_lease_id = @leaseId, ended_at = @at, updated_at = @at
    WHERE id = @id AND status IN ('PENDING', 'RUNNING')
    RETURNING ${INVOCATION_COLUMNS}`);

  return {
    isPending: (id) => pending.get(id) !== undefined,
    start(id, at) {
      const row = start.get({ id, at });
      if (!row) return undefined;
      sessions.start({ id: row.sessionId, at, expiresAt: row.expiresAt });
      emit(tx, 'running', row);
      return row.expiresAt;
    },
    end({ id, outcome, leaseId, sessionStartedAt, at }) {
      const ended =
        outcome.kind === 'success'
          ? { status: 'COMPLETED', results: outcome.results, cause: null }
          : { status: 'FAILED', results: null, cause: JSON.stringify(outcome.cause) };
      const row = must(end.get({ ...ended, id, leaseId, at }), 'open invocation of a job');
      crashPoint('end-invocation');
      const status = sessionEnd(outcome);
      sessions.end({ id: row.sessionId, status, startedAt: sessionStartedAt, at });
      emit(tx, outcome.kind === 'success' ? 'completed' : 'failed', row);
      tx.wake(`invocation:${id}`);
    },
  };
});

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

type Step = 'pending' | 'running' | 'completed' | 'failed';

/** The event tells the invocation as GET would, but for its params and logs. */
function emit(tx: Tx, step: Step, row: InvocationRow): void {
  const { id, projectId, params: _, timeoutMs: __, results, cause, ...rest } = row;
  const data: Record<string, unknown> = {
    id,
    ...rest,
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    startedAt: iso(row.startedAt ?? row.createdAt),
    endedAt: row.endedAt === null ? undefined : iso(row.endedAt),
    expiresAt: iso(row.expiresAt),
  };
  // Results that cannot fit the envelope go as the beginning of their text, too long as well, and
  // are cut there: parsing or copying megabytes here would stall all.
  if (step === 'completed') data['results'] = results === null ? null : parsedIfShort(results);
  if (cause !== null) data['cause'] = JSON.parse(cause);
  const at = row.updatedAt;
  emitEvent(tx, { type: `functions.invocations.${step}`, resourceId: id, projectId, data, at });
}

function parsedIfShort(json: string): unknown {
  return json.length > BODY_MAX_BYTES ? json.slice(0, BODY_MAX_BYTES + 1) : JSON.parse(json);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
