/**
 * The cancelling of invocations in SQLite. One that waits has ended with it; one that runs is
 * released, and its runner ends it. Whatever way it then fails, it was cancelled; a handler that
 * returned before its runner heard of it has its result.
 *   PENDING --cancel--> FAILED;  RUNNING --cancel--> RUNNING, told to its runner
 */
import type { CancelOps, InvocationCause } from '../../types/invocations.ts';
import type { InvocationOutcome } from '../../types/leases.ts';
import type { Tx } from '../engine/transaction.ts';
import { invocationReader } from './invocation-rows.ts';
import { invocationMoves } from './invocations.ts';
import { ENDING_GRACE_MS, type JobRow, queueOf } from './queue.ts';

/** The enum of codes is the reference's: its user ended it, and nothing of ours was broken. */
const CANCELLED: InvocationCause = {
  code: 'WORKLOAD_ERROR',
  message: 'The invocation was cancelled.',
  name: 'Cancelled',
};

export function cancelOps(tx: Tx): CancelOps {
  const queue = queueOf(tx);
  const invocations = invocationMoves(tx);
  const read = invocationReader(tx);
  return {
    cancelInvocation({ at, ...wanted }) {
      const { id } = wanted;
      const before = read(wanted);
      const job = before?.endedAt === null ? queue.find(id) : undefined;
      if (!before || !job) return before;
      if (before.status === 'PENDING') {
        const outcome = { kind: 'failure', cause: CANCELLED } as const;
        invocations.end({ id, outcome, leaseId: null, sessionStartedAt: null, at });
        queue.drop(job);
      } else if (queue.release(job, { at, endBy: at + ENDING_GRACE_MS })) {
        tx.wake('releases');
      }
      tx.crashPoint('cancel-invocation');
      return read(wanted);
    },
  };
}

/** An invocation's outcome as its user sees it. */
export function outcomeFor({ releasedAt }: JobRow, outcome: InvocationOutcome): InvocationOutcome {
  if (releasedAt === null || outcome.kind === 'success') return outcome;
  return { kind: 'failure', cause: CANCELLED };
}
