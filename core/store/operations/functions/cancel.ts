/**
 * The cancel of invocations. A PENDING invocation ends at once. A RUNNING one is released, and its
 * runner ends it: any failure is then reported as cancelled, and a handler that returned before its
 * runner received the release keeps its result.
 *   PENDING --cancel--> FAILED;  RUNNING --cancel--> RUNNING, released to its runner
 */
import { must } from '../../../../proto/common/must.ts';
import type { CancelOps } from '../../types/invocations.ts';
import type { InvocationOutcome } from '../../types/leases.ts';
import type { EndedSession } from '../../types/rows.ts';
import type { InvocationStatements, InvocationTransitions } from '../invocations.ts';
import type { Job, Queue } from '../queue.ts';
import type { InSteps, Transaction } from '../steps.ts';
import { CANCELLED } from '../texts.ts';

type CancelDeps = {
  statements: Pick<InvocationStatements, 'read'>;
  invocations: InvocationTransitions;
  queue: Queue;
};

export function cancellation(
  { statements, invocations, queue }: CancelDeps,
  { crashPoint, wake }: Transaction,
): InSteps<CancelOps> {
  return {
    *cancelInvocation({ at, ...wanted }) {
      const { id } = wanted;
      const before = yield* statements.read(wanted);
      const job = before?.endedAt === null ? yield* queue.find(id) : undefined;
      if (!before) return undefined;
      if (!job) return { invocation: before, session: undefined };
      let session: EndedSession | undefined;
      if (before.status === 'PENDING') {
        const outcome = { kind: 'failure', cause: CANCELLED } as const;
        const { projectId, sessionId } = before;
        const end = {
          id,
          projectId,
          sessionId,
          outcome,
          leaseId: null,
          sessionStartedAt: null,
          at,
        };
        session = yield* invocations.end(end);
        queue.drop(job);
      } else if (yield* queue.release(job, at)) {
        wake('releases');
      }
      crashPoint('cancel-invocation');
      const invocation = must(yield* statements.read(wanted), 'invocation just read');
      return { invocation, session };
    },
  };
}

/** An invocation's outcome as its user sees it. */
export function outcomeFor({ releasedAt }: Job, outcome: InvocationOutcome): InvocationOutcome {
  if (releasedAt === null || outcome.kind === 'success') return outcome;
  return { kind: 'failure', cause: CANCELLED };
}
