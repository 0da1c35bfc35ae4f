/** Texts of operations for users: causes, reasons of an end, and faults. */
import { Fault } from '../../../proto/rpc/errors.ts';
import { END_REASONS, INVOCATION_END_REASONS } from '../../../proto/sessions/end-reasons.ts';
import { cutUtf8 } from '../../delivery/envelope.ts';
import type { InvocationCause, ScheduleOutcome } from '../types/invocations.ts';
import type { WorkKind } from '../types/leases.ts';

/** In bytes, of an ended session. Ours: one sentence for people. */
const REASON_MAX_BYTES = 1 << 10;

export type Cause = { code: 'INTERNAL_ERROR' | 'TIMED_OUT'; message: string };

/** Codes of the published interface: a user ended the invocation, no component failed. */
export const CANCELLED: InvocationCause = {
  code: 'WORKLOAD_ERROR',
  message: INVOCATION_END_REASONS.cancelled,
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

export const RUNNER_LOST: Cause = { code: 'INTERNAL_ERROR', message: END_REASONS.runnerLost };
/** What its runner would have reported in time. */
export const TIME_OVER: Readonly<Record<WorkKind, string>> = {
  session: END_REASONS.timedOut,
  invocation: INVOCATION_END_REASONS.timedOut,
  build: 'the build did not end within its time limit',
};

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

/** Reasons of an ended session, up to a colon -> label of a metric. */
const REASON_LABELS: Readonly<Record<string, string>> = {
  [END_REASONS.released]: 'released',
  [END_REASONS.left]: 'left',
  [END_REASONS.timedOut]: 'timeout',
  [END_REASONS.unvisited]: 'unvisited',
  [END_REASONS.browserLost]: 'browser_lost',
  [END_REASONS.browserFailed]: 'browser_failed',
  [END_REASONS.browserLate]: 'browser_failed',
  [INVOCATION_END_REASONS.notStarted]: 'browser_failed',
  [END_REASONS.shutdown]: 'shutdown',
  [END_REASONS.runnerLost]: 'runner_lost',
  [END_REASONS.noRunner]: 'no_runner',
  // of rows that earlier versions have written
  'It was released.': 'released',
  'Its time was over.': 'timeout',
  'Its browser was not ready in time.': 'browser_failed',
  'The runner was lost.': 'runner_lost',
  'Its runner did not end it in time.': 'runner_lost',
  'No runner was free in time.': 'no_runner',
  '': 'function',
  [INVOCATION_END_REASONS.ended]: 'function',
  [INVOCATION_END_REASONS.cancelled]: 'function',
  [INVOCATION_END_REASONS.timedOut]: 'function',
};

/** Of an ended session. */
export function cutReason(reason: string): string {
  return cutUtf8(reason, REASON_MAX_BYTES);
}

/** The session of an invocation had no reason before. */
export function reasonLabel(reason: string | null): string {
  if (reason === null) return 'function';
  return REASON_LABELS[reason.replace(/:.*/s, '')] ?? 'other';
}
