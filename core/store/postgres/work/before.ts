/**
 * The work of a held job as it was when the job was locked. Nobody else changes its state until the
 * commit, so what a transition makes of it is known before its statement is answered: the event of
 * a transition is sent together with it.
 */
import type { ChangedInvocation } from '../../operations/invocations.ts';
import type { HeldJob } from '../../operations/queue.ts';
import type { HandoffRow, ListedSession } from '../../types/sessions.ts';
import type { Tx } from '../engine/transaction.ts';
import { type Receivers, receiversOf } from '../webhooks/receivers.ts';
import { listed, type Stored } from './session-rows.ts';

type SessionFacts = {
  /** Null for an invocation's. */
  timeoutMs: number | null;
  /** It has recordings, all of them complete. */
  isWhole: boolean;
  /** The pending one, locked. */
  handoff: HandoffRow | null;
};

/** A held job with the rows of its work. */
export type HeldRow = Omit<HeldJob, 'isPending'> &
  Receivers & {
    isPendingBuild: boolean;
    session: (Stored<ListedSession> & SessionFacts) | null;
    invocation: ChangedInvocation | null;
  };

type Before = {
  /** By their ids. */
  sessions: Map<string, SessionFacts & { row: ListedSession }>;
  invocations: Map<string, ChangedInvocation>;
  /** By the lease. */
  sessionIds: Map<string, string>;
};

const KNOWN = {};

/** What the running operation has read. A transition replaces a row. */
export function rowsBefore(tx: Tx): Before {
  return tx.memory(KNOWN, () => ({
    sessions: new Map(),
    invocations: new Map(),
    sessionIds: new Map(),
  }));
}

/** Remembers the work of the job, and who receives its events. */
export function remembered(tx: Tx): (row: HeldRow) => HeldJob {
  return ({ webhooks, heardUntil, session, invocation, isPendingBuild, ...job }) => {
    receiversOf(tx).set(job.projectId, { webhooks, heardUntil });
    const before = rowsBefore(tx);
    if (session !== null) {
      const { timeoutMs, isWhole, handoff, ...stored } = session;
      const facts = { timeoutMs, isWhole, handoff };
      before.sessions.set(session.id, { row: listed<ListedSession>(stored), ...facts });
      if (job.leaseId !== null) before.sessionIds.set(job.leaseId, session.id);
    }
    if (invocation !== null) before.invocations.set(invocation.id, invocation);
    return { ...job, isPending: isPendingBuild || invocation?.status === 'PENDING' ? 1 : 0 };
  };
}
