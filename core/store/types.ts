/**
 * The seam between rules and SQL: named operations, each one transaction. Arguments and results are
 * plain JSON-able values (Uint8Array allowed: a Buffer crosses the thread as one), times are Unix
 * milliseconds, and the caller chooses ids and times. One interface per noun in types/<noun>.ts; an
 * engine implements all of them, and test/core/store/store.test.ts runs on every engine.
 */
import type { CoreMessageKind, Snapshot, Topic } from './messages.ts';
import type { AuditOps } from './types/audit.ts';
import type { BuiltInOps } from './types/built-in.ts';
import type { ConsoleOps } from './types/console.ts';
import type { ConsoleDataOps } from './types/console-data.ts';
import type { ContextContentOps, ContextOps } from './types/contexts.ts';
import type {
  DeliveryOps,
  DeliveryViewOps,
  ListenerOps,
  RedeliveryOps,
} from './types/deliveries.ts';
import type {
  BlobOps,
  CertificateOps,
  DownloadOps,
  ExtensionOps,
  StorageOps,
} from './types/files.ts';
import type { BuildOps, FunctionDeletionOps, FunctionOps, SecretOps } from './types/functions.ts';
import type { CancelOps, IdempotencyOps, InvocationOps, ScheduleOps } from './types/invocations.ts';
import type { LeaseOps, LogOps } from './types/leases.ts';
import type { LoginOps } from './types/logins.ts';
import type {
  MetricOps,
  RetentionOps,
  SessionRetentionOps,
  TimeOps,
  WorkRetentionOps,
} from './types/maintenance.ts';
import type { OperatorViewOps } from './types/operator.ts';
import type { KeyOps, OperatorOps, ProjectOps } from './types/projects.ts';
import type { RecordingOps } from './types/recordings.ts';
import type {
  HandoffOps,
  LabelOps,
  ReportOps,
  SessionLifeOps,
  SessionLogOps,
  SessionOps,
} from './types/sessions.ts';
import type { WebhookOps } from './types/webhooks.ts';

/** All operations, as the engine has them: synchronous, inside its transaction. */
export type StoreOps = ProjectOps &
  OperatorOps &
  KeyOps &
  LoginOps &
  AuditOps &
  OperatorViewOps &
  SessionOps &
  SessionLogOps &
  SessionLifeOps &
  SessionRetentionOps &
  LabelOps &
  ContextOps &
  ContextContentOps &
  BuildOps &
  FunctionOps &
  FunctionDeletionOps &
  BuiltInOps &
  InvocationOps &
  CancelOps &
  IdempotencyOps &
  ScheduleOps &
  LeaseOps &
  LogOps &
  ReportOps &
  BlobOps &
  StorageOps &
  TimeOps &
  DownloadOps &
  ExtensionOps &
  CertificateOps &
  RecordingOps &
  HandoffOps &
  SecretOps &
  WebhookOps &
  DeliveryOps &
  DeliveryViewOps &
  RedeliveryOps &
  ListenerOps &
  RetentionOps &
  MetricOps &
  WorkRetentionOps &
  ConsoleOps &
  ConsoleDataOps;

type Async<O> = {
  [K in keyof O]: O[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : never;
};

/** The same operations for services. They resolve after the transaction is on disk. */
export type Store = Async<StoreOps> & {
  /** Calls the listener after each commit that woke the topic. Returns a function that ends it. */
  onWake(topic: Topic, listener: () => void): () => void;
  /** Copies the database at one moment to that path. Other operations commit meanwhile. */
  snapshot(path: string): Promise<Snapshot>;
  /** Recent waits of commits for the disk (p95); undefined when there were too few. */
  syncP95Ms(): number | undefined;
  /** The clock of the database's server, which several cores follow; undefined without a server. */
  serverTime(): Promise<number> | undefined;
  /**
   * Whether this process does what one of all cores does: sweeps, schedules, retention. It may
   * change at any time.
   */
  isLeader(): boolean;
  /**
   * For how many milliseconds the connection for wakes and for the leader has been lost; 0 while it
   * works, and without a server.
   */
  lineLostMs(): number;
  /** Sends to the other cores on the database. Throws for more than 5 KB. */
  sendToCores(kind: CoreMessageKind, content: string): void;
  /** Calls the listener, the only one of that kind, with each content that another core sent. */
  onCoreMessage(kind: CoreMessageKind, listener: (content: string) => void): void;
  /** Answers all earlier operations, then closes the database. */
  close(): Promise<void>;
};
