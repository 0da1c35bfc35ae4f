/** A stored database without its store: what a check, `doctor`, a backup and a restore read. */
import type { Snapshot } from '../messages.ts';

export type Inspected = {
  /** Sentences for the operator; empty when all is well. */
  problems: string[];
  blobs: { id: string; size: number; sha256: string }[];
  /** Null before the first start. */
  masterKeyCheck: Uint8Array | null;
  /** The latest time that was written. */
  lastTime: number;
};

/** A database that no core can open until this is disposed. */
export type OfflineDatabase = Disposable & {
  /** Copies the database to that path. */
  snapshot(path: string, signal?: AbortSignal): Promise<Snapshot>;
};
