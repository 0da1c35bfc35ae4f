/**
 * One lease, as its work uses it: sessions, invocations and builds alike. The outcome is reported
 * until core answers or the lease is lost; a runner that shuts down reports for 2 s.
 */
import { retry } from '../../proto/common/retry.ts';
import type {
  CompleteBuildRequest,
  CompleteInvocationRequest,
  CompleteSessionRequest,
  LogLines,
  SessionLogChunk,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import { abortAfter } from '../common/abort.ts';
import { isRepeatable } from '../common/core-calls.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import type { HeldLease, LeaseState } from './leases.ts';
import type { Sending } from './reported.ts';

/** Ours: between two attempts to report an outcome. */
const RETRY_MS = 500;
/** Ours: for outcomes of work that a shutdown ended; core may be shutting down too. */
const SHUTDOWN_GRACE_MS = 2_000;
/** Ours: core ends the lease with its outcome, and a renewal may report that before the answer. */
const ANSWER_MS = 1_000;

/** The outcome of a piece of work. */
export type Outcome =
  | ({ kind: 'INVOCATION' } & Omit<CompleteInvocationRequest, 'leaseId'>)
  | ({ kind: 'SESSION' } & Omit<CompleteSessionRequest, 'leaseId'>)
  | ({ kind: 'BUILD' } & Omit<CompleteBuildRequest, 'leaseId'>);

export type Lease = LeaseState & {
  /** For calls on behalf of the work: the runner's token, and the trace of the work. */
  call: CallOptions;
  /**
   * Its signal aborts 2 s after the runner has stopped; a deadline that is created later has 2 s of
   * its own. What is sent under a lost lease core accepts or refuses.
   */
  reportDeadline(): Disposable & { signal: AbortSignal };
  /** Sends lines of the work's log, numbered from `first`. Rejects when core does not accept. */
  appendLogs(first: number, lines: LogLines['lines'], how: Sending): Promise<void>;
  /** Sends a part of its session's protocol log; resolves with whether the log is full. */
  appendChunk(chunk: Omit<SessionLogChunk, 'leaseId'>, how: Sending): Promise<boolean>;
  /** Reports the outcome, unless the lease is lost. Called once; never rejects. */
  complete(outcome: Outcome): Promise<void>;
};

export function openLease(held: HeldLease, { clients, call, log, stopped }: RunnerContext): Lease {
  const { id, acknowledged, lost, released, append, pauseOf, waitOf } = held;
  const { runners } = clients;
  const reportDeadline: Lease['reportDeadline'] = () => abortAfter(stopped, SHUTDOWN_GRACE_MS);

  /** Whether core has answered. Never rejects. */
  const report = async (outcome: Outcome): Promise<boolean> => {
    if (lost.aborted) return false;
    using shutdown = abortAfter(stopped, SHUTDOWN_GRACE_MS);
    using unanswered = abortAfter(lost, ANSWER_MS);
    const deadline = AbortSignal.any([lost, shutdown.signal]);
    const signal = AbortSignal.any([shutdown.signal, unanswered.signal]);
    const attempt = () => send(runners, id, { outcome, options: { ...call, signal } });
    const pauses = { firstMs: RETRY_MS, maxMs: RETRY_MS, signal: deadline };
    try {
      const answer = await retry(attempt, { ...pauses, isRetryable: isRepeatable });
      if (!answer.accepted) log.warn({ leaseId: id }, 'the outcome was late: the lease was lost');
      return true;
    } catch (error) {
      if (deadline.aborted) return false;
      log.error({ err: error, leaseId: id }, 'core refused an outcome');
      return true;
    }
  };
  return {
    id,
    acknowledged,
    lost,
    released,
    call,
    reportDeadline,
    append,
    pauseOf,
    waitOf,
    async appendLogs(first, lines, how) {
      await append({ kind: 'lines', lines: { leaseId: id, first, lines } }, how);
    },
    appendChunk: (chunk, how) => append({ kind: 'chunk', chunk: { leaseId: id, ...chunk } }, how),
    complete: (outcome) => held.report(() => report(outcome)),
  };
}

function send(
  runners: RunnerContext['clients']['runners'],
  leaseId: string,
  { outcome, options }: { outcome: Outcome; options: CallOptions },
): Promise<{ accepted: boolean }> {
  switch (outcome.kind) {
    case 'INVOCATION': {
      const { kind: _, ...end } = outcome;
      return runners.completeInvocation({ leaseId, ...end }, options);
    }
    case 'SESSION': {
      const { end, reason, proxyBytes } = outcome;
      return runners.completeSession({ leaseId, end, reason, proxyBytes }, options);
    }
    case 'BUILD':
      return runners.completeBuild({ leaseId, outcome: outcome.outcome }, options);
  }
}
