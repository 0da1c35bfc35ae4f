/** Texts of operations for users: causes, reasons of an end, and faults. */
import { Fault } from '../../../proto/rpc/errors.ts';
import type { InvocationCause, ScheduleOutcome } from '../types/invocations.ts';
import type { WorkKind } from '../types/leases.ts';

export type Cause = { code: 'INTERNAL_ERROR' | 'TIMED_OUT'; message: string };

/** Codes of the published interface: a user ended the invocation, no component failed. */
export const CANCELLED: InvocationCause = {
  code: 'WORKLOAD_ERROR',
  message: 'The invocation was cancelled.',
  name: 'Cancelled',
};

/** Of a schedule with `overlap: 'skip'`. */
export const OVERLAPPED = {
  status: 'skipped',
  reason: 'overlap',
  message: 'The last invocation of the schedule had not ended.',
} satisfies Omit<ScheduleOutcome, 'scheduledFor'>;

/** Of a schedule with `catchUp: 'none'`. */
export const MISSED = {
  status: 'skipped',
  reason: 'missed',
  message: 'The service did not run at that time.',
} satisfies Omit<ScheduleOutcome, 'scheduledFor'>;

export const RUNNER_LOST: Cause = { code: 'INTERNAL_ERROR', message: 'The runner was lost.' };
export const NOT_ENDED_IN_TIME: Cause = {
  code: 'INTERNAL_ERROR',
  message: 'Its runner did not end it in time.',
};
export const TIME_OVER: Cause = { code: 'TIMED_OUT', message: 'Its time was over.' };
export const NO_RUNNER = 'No runner was free in time.';
export const BROWSER_NOT_READY = 'Its browser was not ready in time.';
export const RELEASED = 'It was released.';

export function queueFull(kind: WorkKind, limit: number, current: number): Fault {
  const message =
    `Too many ${kind}s wait in this project (limit ${limit}, currently ${current}). ` +
    'A place comes free when one of them starts or is ended.';
  return new Fault('QUEUE_FULL', message, { limit, current });
}

/** With limit and count: proto/spec/rest.md 4. */
export function sessionLimit(limit: number, current: number): Fault {
  const counts = `(limit ${limit}, currently ${current})`;
  const message =
    `You have exceeded your max concurrent sessions limit ${counts}. ` +
    'A slot is free as soon as a session ends or is released.';
  return new Fault('CONCURRENCY_LIMIT', message, { limit, current });
}

export function tooManyLabels(limit: number): Fault {
  const message = `A project has at most ${limit} labels. Delete one first.`;
  return new Fault('TOO_MANY_LABELS', message, { limit });
}

export function keyMismatch(): Fault {
  const message = 'This idempotency key was used for another request.';
  return new Fault('IDEMPOTENCY_MISMATCH', message);
}

export function instanceSuperseded(): Fault {
  return new Fault('LEASE_LOST', 'This runner instance is not registered, or a newer one is.');
}

export function instanceDraining(): Fault {
  return new Fault('DRAINING', 'This runner instance drains: it is leased no more work.');
}

/** Reasons of an ended session, the runner's too, up to a colon -> label of a metric. */
const REASON_LABELS: Readonly<Record<string, string>> = {
  'the session was released': 'released',
  [RELEASED]: 'released',
  'its last client has left': 'left',
  'session timed out': 'timeout',
  [TIME_OVER.message]: 'timeout',
  'nobody connected in time': 'unvisited',
  'the browser was lost': 'browser_lost',
  'the browser could not be started': 'browser_failed',
  [BROWSER_NOT_READY]: 'browser_failed',
  'the service is shutting down': 'shutdown',
  [RUNNER_LOST.message]: 'runner_lost',
  [NOT_ENDED_IN_TIME.message]: 'runner_lost',
  [NO_RUNNER]: 'no_runner',
};

/** The session of an invocation has no reason of its own. */
export function reasonLabel(reason: string | null): string {
  if (reason === null) return 'function';
  return REASON_LABELS[reason.replace(/:.*/s, '')] ?? 'other';
}
