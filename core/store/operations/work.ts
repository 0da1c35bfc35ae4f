/** The operations of work over an engine's statements: sessions, builds and invocations. */
import type { BuildOps } from '../types/functions.ts';
import type { CancelOps, IdempotencyOps, InvocationOps } from '../types/invocations.ts';
import type { LeaseOps } from '../types/leases.ts';
import type { SessionLifeOps } from '../types/sessions.ts';
import { type BuildStatements, buildCreation, buildTransitions } from './builds.ts';
import { cancellation } from './cancel.ts';
import type { EventStatements } from './events.ts';
import { findIdempotent, type KeyStatements } from './idempotency.ts';
import { acceptance, type InvocationStatements, invocationTransitions } from './invocations.ts';
import { holderOperations, type LeaseStatements, outcomeOperations } from './leases.ts';
import { type QueueStatements, queueOperations } from './queue.ts';
import { sessionLifecycle } from './session-lifecycle.ts';
import { type SessionStatements, sessionTransitions } from './sessions.ts';
import type { InSteps, Transaction } from './steps.ts';
import { type WorkItemStatements, workItems } from './work-items.ts';

/** What an engine brings. */
export type WorkStatements = {
  queue: QueueStatements;
  leases: LeaseStatements;
  sessions: SessionStatements;
  invocations: InvocationStatements;
  builds: BuildStatements;
  keys: KeyStatements;
  events: EventStatements;
  items: WorkItemStatements;
};

export type WorkOps = LeaseOps &
  CancelOps &
  Omit<SessionLifeOps, 'locateSession'> &
  Pick<InvocationOps, 'acceptInvocation'> &
  Pick<BuildOps, 'createBuild'> &
  Pick<IdempotencyOps, 'findIdempotent'>;

export function workOperations(statements: WorkStatements, tx: Transaction): InSteps<WorkOps> {
  const { keys, events } = statements;
  const queue = queueOperations(statements.queue, tx);
  const sessions = sessionTransitions(statements.sessions, tx);
  const ofInvocations = { statements: statements.invocations, keys, events, sessions };
  const invocations = invocationTransitions(ofInvocations, tx);
  const builds = buildTransitions({ builds: statements.builds, events }, tx);
  const leased = { leases: statements.leases, queue, invocations, builds, sessions };
  const itemOf = workItems(statements.items);
  return {
    ...holderOperations(leased),
    ...outcomeOperations({ ...leased, itemOf, ended: statements }, tx),
    ...cancellation({ statements: statements.invocations, invocations, queue }, tx),
    ...sessionLifecycle({ statements: statements.sessions, sessions, queue }, tx),
    ...acceptance({ ...ofInvocations, queue }, tx),
    ...buildCreation({ builds: statements.builds, queue }, tx),
    findIdempotent: (wanted) => findIdempotent(keys, statements.invocations, wanted),
  };
}
