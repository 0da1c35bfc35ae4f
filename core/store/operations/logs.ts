/**
 * Logs: the lines that invocations and builds print, and the protocol logs of sessions. Each log
 * has a head with the number of its next line or chunk, so that a repeated append changes nothing.
 * Beyond its limit a log keeps no more: one marker line, or `fullAt`, records that.
 */
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { StoredKind, Within } from '../types/files.ts';
import type { LogLineRow, LogOps } from '../types/leases.ts';
import type { LateLease } from '../types/rows.ts';
import type { SessionLogChunk, SessionLogOps } from '../types/sessions.ts';
import type { LeasedSession } from './files.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';

type LogHead = { next: number; bytes: number; cut: number };
type SessionLogHead = { next: number; size: number; fullAt: number | null };

/** The log of work under a lease. */
export type HeldLog = LogHead & { leaseId: string; ownerId: string };
/** `quotaMib`: the project's own. `stored`: bytes of the project of the kinds that count. */
export type HeldSessionLog = LeasedSession &
  SessionLogHead & { leaseId: string; quotaMib: number | null; stored: number };

type KeptLine = LogLineRow & { number: number };

export type LogStatements = {
  /** Of the invocations and builds under the leases. */
  under(leaseIds: readonly string[]): Read<HeldLog[]>;
  saveHead(head: LogHead & { ownerId: string }): void;
  insert(ownerId: string, lines: readonly KeptLine[]): void;
};

export type SessionLogStatements = {
  /** Of the sessions under the leases. */
  under(leaseIds: readonly string[], kinds: readonly StoredKind[]): Read<HeldSessionLog[]>;
  lateUnder(wanted: LateLease & { kinds: readonly StoredKind[] }): Read<HeldSessionLog | undefined>;
  saveHead(head: SessionLogHead & { sessionId: string; at: number }): void;
  insert(chunk: SessionLogChunk & LeasedSession & { at: number }): void;
};

type Operations = Pick<LogOps, 'appendLogs'> & Pick<SessionLogOps, 'appendSessionLog'>;
type Statements = { logs: LogStatements; sessionLogs: SessionLogStatements };

export function logOperations(statements: Statements, tx: Transaction): InSteps<Operations> {
  const { lines, chunks } = logAppends(statements, tx);
  return {
    *appendLogs(wanted) {
      const append = lines([wanted.leaseId]);
      return yield* append(wanted);
    },
    *appendSessionLog({ within, endedAfter, ...wanted }) {
      const append = chunks([wanted.leaseId], { kinds: within?.kinds ?? [], endedAfter });
      return yield* append(wanted, () => within);
    },
  };
}

type Lines = Parameters<LogOps['appendLogs']>[0];
type Chunk = Omit<Parameters<SessionLogOps['appendSessionLog']>[0], 'within' | 'endedAfter'>;

/** Appends to the logs under some leases, which are read together. */
export function logAppends({ logs, sessionLogs }: Statements, { crashPoint }: Transaction) {
  function lines(leaseIds: readonly string[]) {
    const held = once(logs.under(leaseIds), ({ ownerId }) => ownerId);
    return function* (wanted: Lines): Steps<boolean> {
      const { leaseId, first, lines, maxBytes, linesMax, marker } = wanted;
      const log = (yield* held()).get(leaseId);
      if (!log) return false;
      if (first > log.next) throw invalidField('first', `must be at most ${log.next}`);
      const kept: KeptLine[] = [];
      for (const line of lines.slice(log.next - first)) {
        const number = log.next++;
        if (log.cut === 1) continue;
        log.bytes += Buffer.byteLength(line.message);
        if (log.bytes > maxBytes || number >= linesMax) log.cut = 1;
        const shown = log.cut === 1 ? { ...line, level: 'warn', message: marker } : line;
        kept.push({ ...shown, number });
      }
      if (kept.length > 0) logs.insert(log.ownerId, kept);
      crashPoint('append-logs');
      logs.saveHead(log);
      return true;
    };
  }

  function chunks(
    leaseIds: readonly string[],
    { kinds, endedAfter }: { kinds: readonly StoredKind[]; endedAfter: number },
  ) {
    const held = once(sessionLogs.under(leaseIds, kinds), ({ sessionId }) => sessionId);
    const added = new Map<string, number>();
    let read: Map<string, HeldSessionLog> | undefined;
    /** All before the first insert: `added` counts what these appends store, and no read does. */
    const logsOf = function* (): Steps<Map<string, HeldSessionLog>> {
      if (read) return read;
      read = yield* held();
      for (const leaseId of leaseIds) {
        if (read.has(leaseId)) continue;
        const late = yield* sessionLogs.lateUnder({ leaseId, kinds, endedAfter });
        if (late) read.set(leaseId, late);
      }
      return read;
    };
    return function* (
      wanted: Chunk,
      withinOf: (log: HeldSessionLog) => Within | undefined,
    ): Steps<'kept' | 'full' | 'lost'> {
      const { leaseId, maxBytes, at, ...chunk } = wanted;
      const log = (yield* logsOf()).get(leaseId);
      if (!log) return 'lost';
      const { sessionId, projectId } = log;
      if (log.fullAt !== null) return 'full';
      if (chunk.number > log.next) throw invalidField('number', `must be at most ${log.next}.`);
      if (chunk.number < log.next) return 'kept';
      const size = log.size + chunk.size;
      const ofProject = (added.get(projectId) ?? 0) + chunk.entries.byteLength;
      const quota = withinOf(log)?.maxBytes ?? Number.POSITIVE_INFINITY;
      if (size > maxBytes || log.stored + ofProject > quota) {
        log.fullAt = at;
        sessionLogs.saveHead({ ...log, at });
        return 'full';
      }
      added.set(projectId, ofProject);
      sessionLogs.insert({ ...chunk, sessionId, projectId, at });
      crashPoint('append-session-log');
      Object.assign(log, { next: log.next + 1, size });
      sessionLogs.saveHead({ ...log, at });
      return 'kept';
    };
  }

  return { lines, chunks };
}

/**
 * The logs by their leases, read once. Leases of one owner have one log, which appends change.
 */
function once<Log extends { leaseId: string }>(
  reading: Read<Log[]>,
  ownerOf: (log: Log) => string,
) {
  let byLease: Map<string, Log> | undefined;
  return function* (): Steps<Map<string, Log>> {
    if (byLease) return byLease;
    const owners = new Map<string, Log>();
    byLease = new Map();
    for (const log of yield* reading) {
      const owner = owners.get(ownerOf(log)) ?? log;
      owners.set(ownerOf(log), owner);
      byLease.set(log.leaseId, owner);
    }
    return byLease;
  };
}
