/**
 * Messages between a store's main side (thread.ts) and its database thread
 * (core/store/sqlite/thread.ts): plain objects only.
 */
import { type Facts, Fault, type Reason } from '../../proto/rpc/errors.ts';

/** How the thread is started. */
export type ThreadOptions = {
  /** The data directory; exists. */
  dir: string;
  /**
   * `full`: an acknowledged write is on disk. `normal`: a power loss may lose the last moments, the
   * end of the process does not.
   */
  durability: 'full' | 'normal';
  /** `name:n`: SIGKILL at the n-th pass of that crash point. Fault tests only. */
  crashAt?: string | undefined;
};

export type OpRequest = {
  kind: 'op';
  id: number;
  op: string;
  args: unknown[];
  /** Clock steps that its times include; for `moveTimes`, with its own. */
  step?: number;
};
/** Copies the database to that path. The answer, a Snapshot, follows the complete copy. */
export type SnapshotRequest = { kind: 'snapshot'; id: number; path: string };

export type ToThread = OpRequest | SnapshotRequest | { kind: 'close' };

/** The blobs that a copy of the database names. */
export type Snapshot = { blobs: { id: string; size: number; sha256: string }[] };

export type PlainError =
  | { kind: 'fault'; reason: Reason; message: string; facts: Facts }
  | { kind: 'error'; message: string; stack: string | undefined };

export type Answer = { id: number; value: unknown } | { id: number; error: PlainError };

export type FromThread =
  | { kind: 'ready'; operations: string[] }
  /** The directory cannot be used. The message is for the operator. */
  | { kind: 'refused'; message: string }
  /** `syncMs`: the commit's wait for the disk; absent without one. */
  | { kind: 'answers'; answers: Answer[]; wakes: Topic[]; syncMs?: number | undefined }
  /** A commit failed, and its state on disk is unknown. The thread ends. */
  | { kind: 'fatal'; message: string }
  | { kind: 'closed' };

export function toPlain(error: unknown): PlainError {
  if (error instanceof Fault) {
    const { reason, message, facts } = error;
    return { kind: 'fault', reason, message, facts };
  }
  if (error instanceof Error) return { kind: 'error', message: error.message, stack: error.stack };
  return { kind: 'error', message: String(error), stack: undefined };
}

export function fromPlain(plain: PlainError): Error {
  if (plain.kind === 'fault') return new Fault(plain.reason, plain.message, plain.facts);
  const error = new Error(plain.message);
  if (plain.stack !== undefined) error.stack = plain.stack;
  return error;
}

/** Topics of listeners in memory. A topic is woken after a commit that concerns it. */
export type Topic =
  | 'work:invocation'
  | 'work:build'
  | 'work:session'
  | 'releases'
  | 'handoffs'
  /** The end of that handoff. */
  | `handoff:${string}`
  | 'sessions'
  | 'deliveries'
  /** One for each project: polls of other projects are not woken. */
  | `events:${string}`
  /** One for each project that a console watches. */
  | `changes:${string}`
  | 'revocations'
  /** The end of that invocation: waits for others are not woken. */
  | `invocation:${string}`;

/**
 * Sent between cores on one database, outside of transactions: state in memory, which is repeated
 * soon. A message may be lost.
 */
export type CoreMessageKind =
  /** A report of a runner, as JSON. */
  | 'runner'
  /** The id of a session, invocation or build whose log a client reads. */
  | 'reader'
  /** A one-time code of the console, or its use, as JSON. */
  | 'code';
