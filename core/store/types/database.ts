/** A database without its store, for checks, `doctor`, backup and restore. */
import type { Snapshot } from '../messages.ts';

export type Inspected = {
  /** Problems for the operator; empty for a usable database. */
  problems: string[];
  blobs: { id: string; size: number; sha256: string }[];
  /** Null before the first start. */
  masterKeyCheck: Uint8Array | null;
  /** The latest stored time. */
  lastTime: number;
};

/** A database, locked against other processes until it is disposed of. */
export type OfflineDatabase = Disposable & {
  /** Copies the database to that path. */
  snapshot(path: string, signal?: AbortSignal): Promise<Snapshot>;
};

/** A table that is moved to another engine. */
export type MovedTable = {
  name: string;
  columns: readonly string[];
  count(): number;
  /** In the order of their insertion, where the table has one. */
  rows(): Iterable<unknown[]>;
};
