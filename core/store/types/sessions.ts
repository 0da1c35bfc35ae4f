import type { Within } from './files.ts';
import type { Holder, LeaseOps, LineLimits, LogLineRow } from './leases.ts';
import type { NewRecording, RecordingAnswer, RecordingLimits } from './recordings.ts';
import type { Dated, LateLease, Owned, Timed } from './rows.ts';

/** Sessions, as stored. */

export type SessionStatus = 'PENDING' | 'RUNNING' | 'ERROR' | 'TIMED_OUT' | 'COMPLETED';

export type SessionRow = Owned &
  Timed & {
    status: SessionStatus;
    region: string;
    contextId: string | null;
    keepAlive: boolean;
    proxyBytes: number;
    /** JSON object. */
    userMetadata: string | null;
    /** JSON object: the settings of its browser. */
    params: string;
    /** Its end was requested: no client may connect. */
    isReleased: boolean;
    /** The reason of its end, one sentence. */
    endReason: string | null;
    /** Names of its labels, by name. */
    labels: string[];
  };

/** Without `params` (up to 64 KiB, for the runner) and without the state of its job. */
export type ListedSession = Omit<SessionRow, 'params' | 'isReleased'>;

export type SessionOps = {
  getSession(wanted: Owned): SessionRow | undefined;
  /** Newest first. */
  listSessions(wanted: {
    projectId: string;
    status: SessionStatus | undefined;
    /** Sessions whose metadata has that text under these keys. */
    metadata?: { keys: string[]; value: string } | undefined;
    /** Keys of names: sessions that have all of these labels. */
    labelKeys?: string[] | undefined;
    max: number;
  }): ListedSession[];
};

export type LabelRow = Owned & Dated & { name: string };

/** `id`: of the label that is created when the project has none of that key. */
export type WantedLabel = { id: string; name: string; nameKey: string };

export type LabelOps = {
  /**
   * `taken`: the project has a label of that key. Throws TOO_MANY_LABELS when it has `max` labels.
   */
  createLabel(
    wanted: WantedLabel & { projectId: string; at: number },
    max: number,
  ): LabelRow | 'taken';
  /** Newest first, from behind `before`. */
  listLabels(wanted: { projectId: string; before: string | undefined; limit: number }): LabelRow[];
  /** `taken`: another label of the project has that key. Undefined when there is none. */
  renameLabel(
    wanted: WantedLabel & { projectId: string; at: number },
  ): LabelRow | 'taken' | undefined;
  /** Deletes it; its sessions have it no longer. False when there was none. */
  deleteLabel(wanted: Owned & { at: number }): boolean;
  /**
   * Replaces the labels of a session; undefined when there is none. Throws TOO_MANY_LABELS when the
   * project would have more than `max`.
   */
  setSessionLabels(
    wanted: Owned & { labels: WantedLabel[]; at: number },
    max: number,
  ): SessionRow | undefined;
  /** Removes up to `max` rows of deleted labels; returns their number. */
  purgeLabels(max: number): number;
};

export type NewUserSession = Owned & {
  region: string;
  contextId: string | null;
  extensionId: string | null;
  keepAlive: boolean;
  /** JSON object. */
  userMetadata: string | null;
  /** JSON object: the settings of its browser. */
  params: string;
  /** Created when missing; the project may have `max`. */
  labels?: { wanted: WantedLabel[]; max: number };
  /** From its start; undefined for the project's default. */
  timeoutMs: number | undefined;
  /** The end of its wait for a runner. */
  waitUntil: number;
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  at: number;
};

/**
 * `busy`: the session of an invocation ends with the invocation only. `hasEnded`: this release has
 * ended it.
 */
export type Released =
  | { outcome: 'released'; session: SessionRow; hasEnded: boolean }
  | { outcome: 'busy' };

export type LocatedSession = {
  projectId: string;
  status: SessionStatus;
  /** Of its runner, if the runner accepts connections. */
  address: string | null;
  /** As registered; null without an address. */
  runnerId: string | null;
  /** Its end was requested: no client may connect. */
  isReleased: boolean;
};

export type SessionLifeOps = {
  /**
   * Stores the session and its job. Throws CONCURRENCY_LIMIT when the project has as many sessions,
   * open and not released, as it may have, and TOO_MANY_LABELS.
   */
  createSession(session: NewUserSession): SessionRow;
  /**
   * A waiting session ends at once. A running one frees its slot, and its runner is informed. An
   * ended one is not changed. Undefined when there is none.
   */
  releaseSession(wanted: Owned & { at: number }): Released | undefined;
  /** Of any project: the caller has verified the session's signing key. */
  locateSession(id: string): LocatedSession | undefined;
  /** To RUNNING, once; its timeout begins. True again when repeated; false for a lost lease. */
  startSession(wanted: { leaseId: string; startedAt: number; at: number }): boolean;
  /** Session, job and counters. True again when repeated; false when the lease was lost. */
  completeSession(wanted: {
    leaseId: string;
    status: 'COMPLETED' | 'TIMED_OUT' | 'ERROR';
    reason: string;
    proxyBytes: number;
    at: number;
  }): boolean;
  /** Leases of that instance whose session was released. LEASE_LOST when superseded. */
  releasedLeases(holder: Holder): string[];
};

export type SessionLogChunk = {
  /** Within its session, from 0. */
  number: number;
  /** zstd of JSON of one SessionLog a line. */
  entries: Uint8Array;
  /** How many entries. */
  count: number;
  /** In bytes, before compression. */
  size: number;
};

export type SessionLogOps = {
  /**
   * Appends a new chunk to the log of the lease's session, up to `maxBytes` before compression and
   * within the project's quota. Beyond either the log is `full` for good. `lost`: the lease is not
   * live, and not of a session that core gave up later than `endedAfter`.
   */
  appendSessionLog(
    wanted: SessionLogChunk & LateLease & { maxBytes: number; within?: Within; at: number },
  ): 'kept' | 'full' | 'lost';
  /**
   * From chunk `from` on: about `maxBytes` before compression, at least one chunk if there is one.
   * `next` is absent at the end; then `fullAt` is the time at which the limit was reached.
   */
  readSessionLog(wanted: { sessionId: string; from: number; maxBytes: number }): {
    chunks: SessionLogChunk[];
    next?: number;
    fullAt?: number;
  };
  /** Removes up to `max` chunks from before `before`; returns their number. */
  purgeSessionLogs(wanted: { before: number; at: number; max: number }): number;
};

/** What a runner reports in one transaction: its renewals, and new parts of logs and recordings. */
export type RunnerReport = Parameters<LeaseOps['renewLeases']>[0] & {
  chunks: ReportedChunk[];
  lines: ReportedLines[];
  /** In bytes, of each log before compression. */
  chunksMaxBytes: number;
  /** Of projects without a quota of their own. */
  logQuota: Within;
  lineLimits: LineLimits;
  recordings: NewRecording[];
  recordingLimits: RecordingLimits;
};
export type ReportedChunk = SessionLogChunk & { leaseId: string };
export type ReportedLines = { leaseId: string; first: number; lines: LogLineRow[] };
/** `fault`: of this entry alone. */
export type EntryAnswer = 'kept' | 'full' | 'lost' | { fault: string };

export type ReportOps = {
  /**
   * Renews leases, as `renewLeases`, then adds each entry, as `appendSessionLog`, `appendLogs` and
   * `addRecording`. An entry that cannot be stored changes nothing, and the others are stored.
   */
  reportRunner(report: RunnerReport): {
    leaseIds: string[];
    chunks: EntryAnswer[];
    lines: EntryAnswer[];
    recordings: RecordingAnswer[];
  };
};

/** Handoffs of sessions to a person, as stored. */

export type HandoffStatus = 'PENDING' | 'COMPLETED' | 'CANCELLED' | 'EXPIRED';

export type HandoffRow = Owned & {
  sessionId: string;
  status: HandoffStatus;
  instructions: string;
  /** Public part of the API key in its link; empty without one. */
  keyId: string;
  createdAt: number;
  expiresAt: number;
  endedAt: number | null;
};

/** Of a session whose runner holds that lease. */
export type LeasedHandoff = Pick<HandoffRow, 'id' | 'instructions'> & { leaseId: string };

export type HandoffOps = {
  /**
   * Stores it for a running session of the project; it expires with the session at the latest.
   * Throws HANDOFF_PENDING and TOO_MANY_HANDOFFS. Undefined when no such session runs.
   */
  createHandoff(wanted: NewHandoff, max: number): HandoffRow | undefined;
  getHandoff(wanted: Owned & { sessionId: string }): HandoffRow | undefined;
  isHandoffPending(id: string): boolean;
  /** Newest first. */
  listHandoffs(wanted: { sessionId: string; projectId: string; max: number }): HandoffRow[];
  /** From pending; an ended one stays as it is. Undefined when there is none. */
  endHandoff(
    wanted: Owned & { sessionId: string; status: 'COMPLETED' | 'CANCELLED'; at: number },
  ): HandoffRow | undefined;
  /** Pending ones of the sessions under that instance's leases. LEASE_LOST when superseded. */
  leasedHandoffs(holder: { runnerId: string; instanceId: string }): LeasedHandoff[];
  /** Those ids that have ended, each with its status. */
  endedHandoffs(ids: string[]): Pick<HandoffRow, 'id' | 'status'>[];
  /** The session of the work under a lease. */
  sessionOfLease(leaseId: string): { sessionId: string; projectId: string } | undefined;
};

export type NewHandoff = Omit<HandoffRow, 'status' | 'createdAt' | 'endedAt'> & { at: number };
