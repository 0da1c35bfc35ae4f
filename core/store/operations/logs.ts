/**
 * Logs: the lines that invocations and builds print, and the protocol logs of sessions. Each log
 * has a head with the number of its next line or chunk, so that a repeated append changes nothing.
 * Beyond its limit a log keeps no more: one marker line, or `fullAt`, records that.
 */
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { LogLineRow, LogOps } from '../types/leases.ts';
import type { SessionLogChunk, SessionLogOps } from '../types/sessions.ts';
import type { LeasedSession } from './files.ts';
import { hasRoom, type StorageStatements } from './files.ts';
import type { InSteps, Read, Transaction } from './steps.ts';

type LogHead = { next: number; bytes: number; cut: number };
type SessionLogHead = { next: number; size: number; fullAt: number | null };

export type LogStatements = {
  /** The invocation or build under the lease. */
  ownerOf(leaseId: string): Read<string | undefined>;
  head(ownerId: string): Read<LogHead | undefined>;
  saveHead(head: LogHead & { ownerId: string }): void;
  insert(line: LogLineRow & { ownerId: string; number: number }): void;
};

export type SessionLogStatements = {
  sessionOf(leaseId: string): Read<LeasedSession | undefined>;
  head(sessionId: string): Read<SessionLogHead | undefined>;
  saveHead(head: SessionLogHead & { sessionId: string; at: number }): void;
  insert(chunk: SessionLogChunk & { sessionId: string; at: number }): void;
};

type Operations = Pick<LogOps, 'appendLogs'> & Pick<SessionLogOps, 'appendSessionLog'>;

export function logOperations(
  parts: { logs: LogStatements; sessionLogs: SessionLogStatements; storage: StorageStatements },
  { crashPoint }: Transaction,
): InSteps<Operations> {
  const { logs, sessionLogs, storage } = parts;
  return {
    *appendLogs({ leaseId, first, lines, maxBytes, linesMax, marker }) {
      const ownerId = yield* logs.ownerOf(leaseId);
      if (ownerId === undefined) return false;
      const head = (yield* logs.head(ownerId)) ?? { next: 0, bytes: 0, cut: 0 };
      if (first > head.next) throw invalidField('first', `must be at most ${head.next}`);
      for (const line of lines.slice(head.next - first)) {
        const number = head.next++;
        if (head.cut === 1) continue;
        head.bytes += Buffer.byteLength(line.message);
        if (head.bytes > maxBytes || number >= linesMax) head.cut = 1;
        const kept = head.cut === 1 ? { ...line, level: 'warn', message: marker } : line;
        logs.insert({ ...kept, ownerId, number });
      }
      crashPoint('append-logs');
      logs.saveHead({ ...head, ownerId });
      return true;
    },
    *appendSessionLog({ leaseId, maxBytes, within, at, ...chunk }) {
      const session = yield* sessionLogs.sessionOf(leaseId);
      if (!session) return 'lost';
      const { sessionId, projectId } = session;
      const head = (yield* sessionLogs.head(sessionId)) ?? { next: 0, size: 0, fullAt: null };
      if (head.fullAt !== null) return 'full';
      if (chunk.number > head.next) throw invalidField('number', `must be at most ${head.next}.`);
      if (chunk.number < head.next) return 'kept';
      const size = head.size + chunk.size;
      const wanted = { projectId, bytes: chunk.entries.byteLength };
      if (size > maxBytes || (within && !(yield* hasRoom(storage, wanted, within)))) {
        sessionLogs.saveHead({ ...head, sessionId, fullAt: at, at });
        return 'full';
      }
      sessionLogs.insert({ ...chunk, sessionId, at });
      crashPoint('append-session-log');
      sessionLogs.saveHead({ sessionId, next: head.next + 1, size, fullAt: null, at });
      return 'kept';
    },
  };
}
