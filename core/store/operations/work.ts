/** The operations of work over an engine's statements: sessions, builds and invocations. */
import {
  type BuildStatements,
  buildCreation,
  buildTransitions,
  functionDeletion,
} from './builds.ts';
import type { EventStatements } from './events.ts';
import { cancellation } from './functions/cancel.ts';
import { type ScheduleStatements, scheduleOperations } from './functions/schedules.ts';
import {
  acceptance,
  type InvocationStatements,
  invocationTransitions,
  type KeyStatements,
} from './invocations.ts';
import { holderOperations, type LeaseStatements, outcomeOperations } from './leases.ts';
import { type QueueStatements, queueOperations } from './queue.ts';
import { type HandoffStatements, handoffTransitions } from './sessions/handoffs.ts';
import { sessionLifecycle } from './sessions/lifecycle.ts';
import {
  type LabelStatements,
  labelOperations,
  type SessionStatements,
  sessionTransitions,
} from './sessions/sessions.ts';
import type { Transaction } from './steps.ts';
import { type WorkItemStatements, workItems } from './work-items.ts';

/** What an engine brings. */
export type WorkStatements = {
  queue: QueueStatements;
  leases: LeaseStatements;
  sessions: SessionStatements;
  labels: LabelStatements;
  invocations: InvocationStatements;
  builds: BuildStatements;
  keys: KeyStatements;
  schedules: ScheduleStatements;
  events: EventStatements;
  items: WorkItemStatements;
  handoffs: HandoffStatements;
};

export function workOperations(statements: WorkStatements, tx: Transaction) {
  const { keys, events, labels, schedules } = statements;
  const queue = queueOperations(statements.queue, tx);
  const handoffs = handoffTransitions({ handoffs: statements.handoffs, events }, tx);
  const ofSessions = { sessions: statements.sessions, handoffs, events, labels };
  const sessions = sessionTransitions(ofSessions, tx);
  const ofInvocations = { statements: statements.invocations, keys, events, sessions };
  const invocations = invocationTransitions(ofInvocations, tx);
  const builds = buildTransitions({ builds: statements.builds, events }, tx);
  const leased = { leases: statements.leases, handoffs, queue, invocations, builds, sessions };
  const itemOf = workItems(statements.items);
  const accepted = acceptance({ ...ofInvocations, queue }, tx);
  const accept = accepted.acceptInvocation;
  return {
    ...holderOperations(leased),
    ...outcomeOperations({ ...leased, itemOf }, tx),
    ...cancellation({ statements: statements.invocations, invocations, queue }, tx),
    ...sessionLifecycle({ statements: statements.sessions, sessions, queue }, tx),
    ...labelOperations({ labels, sessions: statements.sessions }),
    ...accepted,
    ...scheduleOperations({ schedules, accept }, tx),
    ...buildCreation({ builds: statements.builds, queue }, tx),
    ...functionDeletion({ builds: statements.builds, schedules }, tx),
  };
}
