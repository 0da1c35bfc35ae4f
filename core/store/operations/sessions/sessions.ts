/**
 * The transitions of a session (states.ts), inside the operation that moves the session's
 * invocation, or the session itself where a user started it. Labels of a project, and which ones a
 * session has.
 */

import type { Holder } from '../../types/leases.ts';
import type { Owned } from '../../types/rows.ts';
import type {
  LabelOps,
  LabelRow,
  LeasedHandoff,
  ListedSession,
  NewUserSession,
  SessionRow,
  SessionStatus,
  WantedLabel,
} from '../../types/sessions.ts';
import { type EventStatements, emitTransition, recordingEvent, sessionEvent } from '../events.ts';
import { type InSteps, known, type Read, type Steps, type Transaction } from '../steps.ts';
import { tooManyLabels } from '../texts.ts';
import type { HandoffTransitions } from './handoffs.ts';

export type NewSession = Omit<NewUserSession, 'timeoutMs' | 'waitUntil' | 'traceparent'> & {
  /** From its start; null for an invocation's. */
  timeoutMs: number | null;
  expiresAt: number;
};

export type SessionEnd = {
  id: string;
  projectId: string;
  status: SessionStatus;
  /** When its Chrome was ready, if the invocation's runner reports it with the end. */
  startedAt?: number | null;
  /** One sentence for its user. */
  reason?: string | null;
  proxyBytes?: number;
  /** The lease under which it ended. */
  leaseId?: string | null;
  /** Core ended it, not the runner. */
  isGivenUp?: boolean;
  at: number;
};

type SessionStart = { id: string; startedAt: number; expiresAt: number; at: number };

export type SessionStatements = {
  /** PENDING. */
  insert(session: NewSession): void;
  addMetadata(text: Owned & { path: string; value: string }): void;
  read(wanted: Owned): Read<SessionRow | undefined>;
  isPending(id: string): Read<boolean>;
  isOfInvocation(id: string): Read<boolean>;
  /** The user's session under the lease, while it is PENDING. */
  pendingUnder(leaseId: string): Read<{ createdAt: number; timeoutMs: number } | undefined>;
  /** To RUNNING; undefined when it was not PENDING. */
  start(wanted: SessionStart): Read<ListedSession | undefined>;
  /** Undefined when it had ended: it stays as it is. */
  end(
    wanted: Required<Omit<SessionEnd, 'projectId' | 'isGivenUp'>> & { isGivenUp: 0 | 1 },
  ): Read<ListedSession | undefined>;
  /** Whether it has ended and has recordings, all of them complete. */
  isRecorded(id: string): Read<boolean>;
  /** Whether the runner of the lease ended it. */
  endedBy(leaseId: string): Read<boolean>;
  /**
   * Sessions that the project may have live, and that it has live and not released; its default
   * timeout in seconds.
   */
  limit(projectId: string): Read<{ limit: number; current: number; defaultTimeout: number }>;
  /** Pending handoffs of the sessions under that instance's leases. */
  leasedHandoffs(holder: Holder): Read<LeasedHandoff[]>;
  /** Leases of that instance whose session was released. */
  releasedLeases(holder: Holder): Read<string[]>;
};

export type LabelStatements = {
  /** Its id; undefined when the project has no label of that key. */
  find(projectId: string, nameKey: string): Read<string | undefined>;
  has(wanted: Owned): Read<boolean>;
  countOf(projectId: string): Read<number>;
  insert(label: NewLabel): Read<LabelRow>;
  rename(label: NewLabel): Read<LabelRow>;
  /** False when there is none. */
  remove(wanted: Owned & { at: number }): Read<boolean>;
  /** Removes up to `max` sessions' rows of deleted labels, then labels without such rows. */
  purge(max: number): Read<number>;
  /** Names of the labels of a session, sorted. */
  namesOf(sessionId: string): Read<string[]>;
  attach(wanted: { labelId: string; sessionId: string; projectId: string }): void;
  detachAll(sessionId: string): void;
  touch(wanted: { id: string; at: number }): void;
};

export type SessionTransitions = ReturnType<typeof sessionTransitions>;

type TransitionDeps = LabelDeps & {
  sessions: SessionStatements;
  handoffs: HandoffTransitions;
  events: EventStatements;
};

export function sessionTransitions(
  { sessions, handoffs, events, labels }: TransitionDeps,
  tx: Transaction,
) {
  return {
    isPending: sessions.isPending,
    *open(session: NewSession): Steps<ListedSession> {
      sessions.insert(session);
      const row = newRow(session);
      const { id, projectId, userMetadata } = session;
      for (const [keys, value] of textsOf(JSON.parse(userMetadata ?? 'null'), [])) {
        sessions.addMetadata({ id, projectId, path: JSON.stringify(keys), value });
      }
      if (session.labels !== undefined) {
        const { wanted, max } = session.labels;
        yield* attachLabels(labels, { ...session, labels: wanted }, max);
        row.labels = yield* labels.namesOf(id);
      }
      const moment = { type: 'sessions.created', projectId, at: session.at };
      yield* emitTransition(events, tx, moment, () => known(sessionEvent('created', row)));
      return row;
    },
    *start({ projectId, ...wanted }: SessionStart & { projectId: string }): Steps<void> {
      const starting = sessions.start(wanted);
      tx.wake('sessions');
      const moment = { type: 'sessions.running', projectId, at: wanted.at };
      yield* emitTransition(events, tx, moment, function* () {
        const row = yield* starting;
        return row && sessionEvent('running', row);
      });
    },
    *end({ projectId, ...end }: SessionEnd): Steps<void> {
      const { startedAt = null, reason = null, proxyBytes = 0, leaseId = null, id, at } = end;
      const isGivenUp = end.isGivenUp ? 1 : 0;
      const ending = sessions.end({ ...end, startedAt, reason, proxyBytes, leaseId, isGivenUp });
      tx.wake('sessions');
      yield* handoffs.expireOf({ id, projectId }, at);
      yield* emitTransition(events, tx, { type: 'sessions.ended', projectId, at }, function* () {
        const row = yield* ending;
        return row && sessionEvent('ended', row);
      });
      const recorded = recordingEvent({ sessionId: id, projectId, at });
      yield* emitTransition(events, tx, recorded, function* () {
        const isReady = (yield* ending) && (yield* sessions.isRecorded(id));
        return isReady ? recorded : undefined;
      });
    },
  };
}

/** As stored. */
function newRow(session: NewSession): ListedSession {
  const { id, projectId, region, contextId, keepAlive, userMetadata, expiresAt, at } = session;
  return {
    id,
    projectId,
    status: 'PENDING',
    region,
    contextId,
    keepAlive,
    proxyBytes: 0,
    userMetadata,
    createdAt: at,
    updatedAt: at,
    startedAt: null,
    endedAt: null,
    expiresAt,
    endReason: null,
    labels: [],
  };
}

/** Each text of a session's metadata, with the keys that lead to it. */
function textsOf(value: unknown, keys: string[]): [string[], string][] {
  if (typeof value === 'string') return [[keys, value]];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => textsOf(member, [...keys, key]));
}

/** Throws TOO_MANY_LABELS. */
function* attachLabels(
  labels: LabelStatements,
  wanted: Owned & { labels: readonly WantedLabel[]; at: number },
  max: number,
): Steps<void> {
  const { id: sessionId, projectId, at } = wanted;
  for (const label of wanted.labels) {
    const found = yield* labels.find(projectId, label.nameKey);
    const labelId = found ?? (yield* addLabel(labels, { ...label, projectId, at }, max)).id;
    labels.attach({ labelId, sessionId, projectId });
  }
}

type NewLabel = WantedLabel & { projectId: string; at: number };

function* addLabel(labels: LabelStatements, wanted: NewLabel, max: number): Steps<LabelRow> {
  if ((yield* labels.countOf(wanted.projectId)) >= max) throw tooManyLabels(max);
  return yield* labels.insert(wanted);
}

type LabelDeps = { labels: LabelStatements; sessions: Pick<SessionStatements, 'read'> };

export function labelOperations({
  labels,
  sessions,
}: LabelDeps): InSteps<Omit<LabelOps, 'listLabels'>> {
  return {
    *createLabel(wanted, max) {
      const other = yield* labels.find(wanted.projectId, wanted.nameKey);
      return other === undefined ? yield* addLabel(labels, wanted, max) : 'taken';
    },
    *renameLabel(wanted) {
      if (!(yield* labels.has(wanted))) return undefined;
      const other = yield* labels.find(wanted.projectId, wanted.nameKey);
      return other === undefined || other === wanted.id ? yield* labels.rename(wanted) : 'taken';
    },
    *deleteLabel(wanted) {
      return yield* labels.remove(wanted);
    },
    *setSessionLabels(wanted, max) {
      if (!(yield* sessions.read(wanted))) return undefined;
      labels.detachAll(wanted.id);
      yield* attachLabels(labels, wanted, max);
      labels.touch(wanted);
      return yield* sessions.read(wanted);
    },
    *purgeLabels(max) {
      return yield* labels.purge(max);
    },
  };
}
