/**
 * The transitions of a session (states.ts), inside the operation that moves the session's
 * invocation, or the session itself where a user started it.
 */
import type { Holder } from '../types/leases.ts';
import type { Owned } from '../types/rows.ts';
import type { NewUserSession, SessionRow, SessionStatus } from '../types/sessions.ts';
import type { Read, Steps, Transaction } from './steps.ts';

export type NewSession = Omit<NewUserSession, 'timeoutMs' | 'waitUntil' | 'traceparent'> & {
  /** From its start; null for an invocation's. */
  timeoutMs: number | null;
  expiresAt: number;
};

export type SessionEnd = {
  id: string;
  status: SessionStatus;
  /** When its Chrome was ready, if the invocation's runner reports it with the end. */
  startedAt?: number | null;
  /** One sentence for its user. */
  reason?: string | null;
  proxyBytes?: number;
  /** The lease whose runner reported the end. */
  leaseId?: string | null;
  at: number;
};

export type SessionStatements = {
  /** PENDING. */
  insert(session: NewSession): void;
  addMetadata(text: Owned & { path: string; value: string }): void;
  read(wanted: Owned): Read<SessionRow | undefined>;
  isPending(id: string): Read<boolean>;
  isOfInvocation(id: string): Read<boolean>;
  /**
   * To RUNNING; returns its expiry, which is its timeout after the start if `expiresAt` is null.
   * Undefined when it was not PENDING.
   */
  start(wanted: {
    id: string;
    startedAt: number;
    expiresAt: number | null;
    at: number;
  }): Read<number | undefined>;
  /** An ended session stays as it is. */
  end(wanted: Required<SessionEnd>): void;
  endedBy(leaseId: string): Read<boolean>;
  /** In seconds, of the project. */
  defaultTimeout(projectId: string): Read<number>;
  /** Sessions that the project may have live, and that it has live and not released. */
  limit(projectId: string): Read<{ limit: number; current: number }>;
  /** Leases of that instance whose session was released. */
  releasedLeases(holder: Holder): Read<string[]>;
};

export type SessionTransitions = ReturnType<typeof sessionTransitions>;

export function sessionTransitions(sessions: SessionStatements, { wake }: Transaction) {
  return {
    isPending: sessions.isPending,
    open(session: NewSession): void {
      sessions.insert(session);
      const { id, projectId, userMetadata } = session;
      if (userMetadata === null) return;
      for (const [keys, value] of textsOf(JSON.parse(userMetadata), [])) {
        sessions.addMetadata({ id, projectId, path: JSON.stringify(keys), value });
      }
    },
    /** With its invocation. */
    *start(wanted: { id: string; at: number; expiresAt: number }): Steps<void> {
      yield* sessions.start({ ...wanted, startedAt: wanted.at });
      wake('sessions');
    },
    /** A user's session; returns its expiry. Undefined when it was not PENDING. */
    *startOwn(wanted: { id: string; startedAt: number; at: number }): Steps<number | undefined> {
      const expiresAt = yield* sessions.start({ ...wanted, expiresAt: null });
      wake('sessions');
      return expiresAt;
    },
    end({ startedAt = null, reason = null, proxyBytes = 0, leaseId = null, ...end }: SessionEnd) {
      sessions.end({ ...end, startedAt, reason, proxyBytes, leaseId });
      wake('sessions');
    },
  };
}

/** Each text of a session's metadata, with the keys that lead to it. */
function textsOf(value: unknown, keys: string[]): [string[], string][] {
  if (typeof value === 'string') return [[keys, value]];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([key, member]) => textsOf(member, [...keys, key]));
}
