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
      return yield* lines([wanted.leaseId]).append(wanted);
    },
    *appendSessionLog({ within, endedAfter, ...wanted }) {
      const log = chunks([wanted.leaseId], { kinds: within?.kinds ?? [], endedAfter });
      return yield* log.append(wanted, () => within);
    },
  };
}

type Lines = Parameters<LogOps['appendLogs']>[0];
type Chunk = Omit<Parameters<SessionLogOps['appendSessionLog']>[0], 'within' | 'endedAfter'>;
type ChunkLimits = { kinds: readonly StoredKind[]; endedAfter: number };

/** Appends to the logs under some leases, which are read together. */
export function logAppends({ logs, sessionLogs }: Statements, { crashPoint }: Transaction) {
  return {
    lines: (leaseIds: readonly string[]) => new LineAppends(logs, leaseIds, crashPoint),
    chunks: (leaseIds: readonly string[], limits: ChunkLimits) =>
      new ChunkAppends(sessionLogs, { leaseIds, ...limits }, crashPoint),
  };
}

class LineAppends {
  readonly #logs: LogStatements;
  readonly #held: HeldLogs<HeldLog>;
  readonly #crashPoint: Transaction['crashPoint'];

  constructor(
    logs: LogStatements,
    leaseIds: readonly string[],
    crashPoint: Transaction['crashPoint'],
  ) {
    this.#logs = logs;
    this.#held = new HeldLogs(logs.under(leaseIds), ({ ownerId }) => ownerId);
    this.#crashPoint = crashPoint;
  }

  *append({ leaseId, first, lines, maxBytes, linesMax, marker }: Lines): Steps<boolean> {
    const log = (yield* this.#held).get(leaseId);
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
    if (kept.length > 0) this.#logs.insert(log.ownerId, kept);
    this.#crashPoint('append-logs');
    this.#logs.saveHead(log);
    return true;
  }
}

class ChunkAppends {
  readonly #logs: SessionLogStatements;
  readonly #wanted: ChunkLimits & { leaseIds: readonly string[] };
  readonly #held: HeldLogs<HeldSessionLog>;
  readonly #crashPoint: Transaction['crashPoint'];
  /** In bytes, by project: what these appends store, and no read counts. */
  readonly #added = new Map<string, number>();
  #byLease: Map<string, HeldSessionLog> | undefined;

  constructor(
    logs: SessionLogStatements,
    wanted: ChunkLimits & { leaseIds: readonly string[] },
    crashPoint: Transaction['crashPoint'],
  ) {
    this.#logs = logs;
    this.#wanted = wanted;
    const { leaseIds, kinds } = wanted;
    this.#held = new HeldLogs(logs.under(leaseIds, kinds), ({ sessionId }) => sessionId);
    this.#crashPoint = crashPoint;
  }

  *append(
    { leaseId, maxBytes, at, ...chunk }: Chunk,
    withinOf: (log: HeldSessionLog) => Within | undefined,
  ): Steps<'kept' | 'full' | 'lost'> {
    const log = (this.#byLease ?? (yield* this.#read())).get(leaseId);
    if (!log) return 'lost';
    const { sessionId, projectId } = log;
    if (log.fullAt !== null) return 'full';
    if (chunk.number > log.next) throw invalidField('number', `must be at most ${log.next}.`);
    if (chunk.number < log.next) return 'kept';
    const size = log.size + chunk.size;
    const ofProject = (this.#added.get(projectId) ?? 0) + chunk.entries.byteLength;
    const quota = withinOf(log)?.maxBytes ?? Number.POSITIVE_INFINITY;
    if (size > maxBytes || log.stored + ofProject > quota) {
      log.fullAt = at;
      this.#logs.saveHead({ ...log, at });
      return 'full';
    }
    this.#added.set(projectId, ofProject);
    this.#logs.insert({ ...chunk, sessionId, projectId, at });
    this.#crashPoint('append-session-log');
    Object.assign(log, { next: log.next + 1, size });
    this.#logs.saveHead({ ...log, at });
    return 'kept';
  }

  /** All logs, before the first insert. */
  *#read(): Steps<Map<string, HeldSessionLog>> {
    const { leaseIds, kinds, endedAfter } = this.#wanted;
    const read = yield* this.#held;
    for (const leaseId of leaseIds) {
      if (read.has(leaseId)) continue;
      const late = yield* this.#logs.lateUnder({ leaseId, kinds, endedAfter });
      if (late) read.set(leaseId, late);
    }
    this.#byLease = read;
    return read;
  }
}

/** The logs by their leases, read once. Leases of one owner have one log, which appends change. */
class HeldLogs<Log extends { leaseId: string }> implements Read<Map<string, Log>> {
  readonly #reading: Read<Log[]>;
  readonly #ownerOf: (log: Log) => string;
  #byLease: Map<string, Log> | undefined;

  constructor(reading: Read<Log[]>, ownerOf: (log: Log) => string) {
    this.#reading = reading;
    this.#ownerOf = ownerOf;
  }

  *[Symbol.iterator](): Steps<Map<string, Log>> {
    if (this.#byLease) return this.#byLease;
    const logs = yield* this.#reading;
    const owners = new Map(logs.map((log) => [this.#ownerOf(log), log]));
    this.#byLease = new Map(
      logs.map((log) => [log.leaseId, owners.get(this.#ownerOf(log)) ?? log]),
    );
    return this.#byLease;
  }
}
