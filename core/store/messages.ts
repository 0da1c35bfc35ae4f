/**
 * What crosses between a store's main side (thread.ts) and its database thread
 * (core/store/sqlite/thread.ts):
 * plain objects only.
 */
import { type Facts, Fault, type Reason } from '../../proto/rpc/errors.ts';

/** How the thread is started. */
export type ThreadOptions = {
  /** The data directory; exists. */
  dir: string;
  /**
   * `full`: acknowledged is on disk. `normal`: the last moments may be lost with the power, never
   * with the process.
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
  /** How many steps of the clock its times have; of `moveTimes` with its own. */
  step?: number;
};
/** Copies the database to that path; the answer is a Snapshot, after the copy is complete. */
export type SnapshotRequest = { kind: 'snapshot'; id: number; path: string };

export type ToThread = OpRequest | SnapshotRequest | { kind: 'close' };

/** What a copy of the database names. */
export type Snapshot = { blobs: { id: string; size: number; sha256: string }[] };

export type PlainError =
  | { kind: 'fault'; reason: Reason; message: string; facts: Facts }
  | { kind: 'error'; message: string; stack: string | undefined };

export type Answer = { id: number; value: unknown } | { id: number; error: PlainError };

export type FromThread =
  | { kind: 'ready'; operations: string[] }
  /** The directory cannot be used as it is: the message is for the operator. */
  | { kind: 'refused'; message: string }
  /** `syncMs`: how long the commit waited for the disk, when it did. */
  | { kind: 'answers'; answers: Answer[]; wakes: Topic[]; syncMs?: number | undefined }
  /** A commit failed, and what of it is on disk is unknown. The thread ends. */
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

/** What listeners in memory wait for. A topic is woken after the commit that concerns it. */
export type Topic =
  | 'work:invocation'
  | 'work:build'
  | 'work:session'
  | 'releases'
  | 'sessions'
  | 'deliveries'
  /** One for each project, so that the polls of others stay asleep. */
  | `events:${string}`
  | 'revocations'
  /** Its end. One for each invocation, so that waits for others stay asleep. */
  | `invocation:${string}`;
