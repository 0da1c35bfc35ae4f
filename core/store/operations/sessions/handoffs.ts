/**
 * Handoffs: PENDING -> COMPLETED | CANCELLED | EXPIRED, once. A running session has at most one
 * that is pending, and it ends with the session at the latest.
 */
import { Fault } from '../../../../proto/rpc/errors.ts';
import type { Owned } from '../../types/rows.ts';
import type {
  HandoffOps,
  HandoffRow,
  HandoffStatus,
  NewHandoff,
  SessionRow,
} from '../../types/sessions.ts';
import { type EventStatements, emitEvent, emitTransition, handoffEvent } from '../events.ts';
import type { InSteps, Read, Steps, Transaction } from '../steps.ts';

export type HandoffStatements = {
  insert(handoff: NewHandoff): Read<HandoffRow>;
  read(wanted: Owned & { sessionId: string }): Read<HandoffRow | undefined>;
  pendingOf(sessionId: string): Read<string | undefined>;
  countOf(sessionId: string): Read<number>;
  /** Undefined when it was not pending. */
  end(wanted: { id: string; status: HandoffStatus; at: number }): Read<HandoffRow | undefined>;
  /** The session's pending one, now EXPIRED; undefined when it had none. */
  expireOf(wanted: { sessionId: string; at: number }): Read<HandoffRow | undefined>;
  /** Pending ones whose time is over. */
  due(wanted: { at: number; max: number }): Read<string[]>;
  session(wanted: Owned): Read<SessionRow | undefined>;
};

type Deps = { handoffs: HandoffStatements; events: EventStatements };
type Writes = Pick<HandoffOps, 'createHandoff' | 'endHandoff'>;

export function handoffOperations({ handoffs, events }: Deps, tx: Transaction): InSteps<Writes> {
  return {
    *createHandoff(wanted, max) {
      const { sessionId, projectId, expiresAt } = wanted;
      const session = yield* handoffs.session({ id: sessionId, projectId });
      if (session?.status !== 'RUNNING' || session.isReleased) return undefined;
      const pending = yield* handoffs.pendingOf(sessionId);
      if (pending !== undefined) throw alreadyPending(pending);
      if ((yield* handoffs.countOf(sessionId)) >= max) throw tooMany(max);
      const until = Math.min(expiresAt, session.expiresAt);
      const row = yield* handoffs.insert({ ...wanted, expiresAt: until });
      tx.crashPoint('create-handoff');
      tx.wake('handoffs');
      yield* emitEvent(events, tx, handoffEvent('requested', row));
      return row;
    },
    *endHandoff({ status, at, ...wanted }) {
      const ended =
        (yield* handoffs.read(wanted)) && (yield* handoffs.end({ ...wanted, status, at }));
      if (ended) {
        wakeEnd(tx, ended.id);
        if (status === 'COMPLETED') yield* emitEvent(events, tx, handoffEvent('completed', ended));
      }
      return yield* handoffs.read(wanted);
    },
  };
}

export type HandoffTransitions = ReturnType<typeof handoffTransitions>;

export function handoffTransitions({ handoffs, events }: Deps, tx: Transaction) {
  function* expire(id: string, at: number): Steps<void> {
    const row = yield* handoffs.end({ id, status: 'EXPIRED', at });
    if (!row) return;
    wakeEnd(tx, id);
    yield* emitEvent(events, tx, handoffEvent('expired', row));
  }

  return {
    *expireDue(wanted: { at: number; max: number }): Steps<void> {
      for (const id of yield* handoffs.due(wanted)) yield* expire(id, wanted.at);
    },
    /** The session has ended. */
    *expireOf(session: { id: string; projectId: string }, at: number): Steps<void> {
      const { id: sessionId, projectId } = session;
      const ended = handoffs.expireOf({ sessionId, at });
      tx.later(ended, (row) => row && wakeEnd(tx, row.id));
      const type = 'sessions.handoff.expired';
      yield* emitTransition(events, tx, { type, projectId, at }, function* () {
        const row = yield* ended;
        return row && handoffEvent('expired', row);
      });
    },
  };
}

/** Runners, and the waits for that handoff alone. */
function wakeEnd({ wake }: Transaction, id: string): void {
  wake('handoffs');
  wake(`handoff:${id}`);
}

function alreadyPending(id: string): Fault {
  const message = 'The session has a pending handoff. Complete or cancel it first.';
  return new Fault('HANDOFF_PENDING', message, { handoffId: id });
}

function tooMany(max: number): Fault {
  return new Fault('TOO_MANY_HANDOFFS', `A session has at most ${max} handoffs.`, { max });
}
