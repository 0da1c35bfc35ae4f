/**
 * The seam between rules and SQL: named operations, each one transaction. Arguments and results are
 * plain JSON-able values (Uint8Array allowed: a Buffer crosses the thread as one), times are Unix
 * milliseconds, ids and times come from the caller. One interface per noun in types/<noun>.ts; an
 * engine implements all of them, and test/core/store/store.test.ts runs on every engine.
 */
import type { Snapshot } from './messages.ts';
import type { BlobOps } from './types/blobs.ts';
import type { ContextContentOps } from './types/context-content.ts';
import type { ContextOps } from './types/contexts.ts';
import type { DeliveryOps } from './types/deliveries.ts';
import type { ExtensionOps } from './types/extensions.ts';
import type { FigureOps } from './types/figures.ts';
import type { DownloadOps } from './types/files.ts';
import type { BuildOps, FunctionOps } from './types/functions.ts';
import type { IdempotencyOps } from './types/idempotency.ts';
import type { CancelOps, InvocationOps } from './types/invocations.ts';
import type { LeaseOps, LogOps } from './types/leases.ts';
import type { ListenerOps } from './types/listeners.ts';
import type { RetentionOps } from './types/maintenance.ts';
import type { OperatorOps } from './types/operators.ts';
import type { ProjectOps } from './types/projects.ts';
import type { RecordingOps } from './types/recordings.ts';
import type { DeliveryViewOps, ReplayOps } from './types/replays.ts';
import type { SessionLifeOps } from './types/session-life.ts';
import type { SessionLogOps } from './types/session-logs.ts';
import type { SessionRetentionOps } from './types/session-retention.ts';
import type { SessionOps } from './types/sessions.ts';
import type { StorageOps } from './types/storage.ts';
import type { TimeOps } from './types/times.ts';
import type { WebhookOps } from './types/webhooks.ts';
import type { WorkRetentionOps } from './types/work-retention.ts';

/** What waits in memory for something to do: told after the commit that made it. */
export type Topic =
  | 'work:invocation'
  | 'work:build'
  | 'work:session'
  | 'releases'
  | 'sessions'
  | 'deliveries'
  /** Of one project: the polls of others need not look. */
  | `events:${string}`
  | 'revocations'
  /** That one has ended: who waits for it need not look when another has. */
  | `invocation:${string}`;

/** All operations, as the engine has them: synchronous, inside its transaction. */
export type StoreOps = ProjectOps &
  OperatorOps &
  SessionOps &
  SessionLogOps &
  SessionLifeOps &
  SessionRetentionOps &
  ContextOps &
  ContextContentOps &
  BuildOps &
  FunctionOps &
  InvocationOps &
  CancelOps &
  IdempotencyOps &
  LeaseOps &
  LogOps &
  BlobOps &
  StorageOps &
  TimeOps &
  DownloadOps &
  ExtensionOps &
  RecordingOps &
  WebhookOps &
  DeliveryOps &
  DeliveryViewOps &
  ReplayOps &
  ListenerOps &
  RetentionOps &
  FigureOps &
  WorkRetentionOps;

type Async<O> = {
  [K in keyof O]: O[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : never;
};

/** The same operations as a service sees them. An answer means that the transaction is on disk. */
export type Store = Async<StoreOps> & {
  /**
   * Calls the listener after each commit that woke the topic; the function given back ends that.
   */
  onWake(topic: Topic, listener: () => void): () => void;
  /** Copies the database, as it is at one moment, to that path; others commit meanwhile. */
  snapshot(path: string): Promise<Snapshot>;
  /** How long commits have lately waited for the disk; undefined when too few did. */
  syncP95Ms(): number | undefined;
  /** Answers everything asked so far, then closes the database. */
  close(): Promise<void>;
};
