/** Work under leases: invocations, builds and sessions that runners take, prolong and end. */

import type { LeasedContext } from './contexts.ts';
import type { LeasedExtension } from './files.ts';
import type { BuildCause } from './functions.ts';
import type { InvocationCause } from './invocations.ts';

export type WorkKind = 'invocation' | 'build' | 'session';

export type LeasedInvocation = {
  kind: 'invocation';
  leaseId: string;
  id: string;
  projectId: string;
  sessionId: string;
  versionId: string;
  functionName: string;
  bundleBlobId: string;
  bundleSha256: string;
  params: string;
  sessionParams: string;
  timeoutMs: number;
  region: string;
  /** What its session starts from; absent for none, or for one deleted since. */
  context?: LeasedContext;
  /** What its session loads; absent for none. */
  extension?: LeasedExtension;
};

export type LeasedBuild = {
  kind: 'build';
  leaseId: string;
  id: string;
  projectId: string;
  entrypoint: string;
  archiveBlobId: string;
  timeoutMs: number;
};

export type LeasedSession = {
  kind: 'session';
  leaseId: string;
  id: string;
  projectId: string;
  params: string;
  timeoutMs: number;
  keepAlive: boolean;
  /** What it starts from; absent for none, or for one deleted since. */
  context?: LeasedContext;
  /** What it loads; absent for none. */
  extension?: LeasedExtension;
};

export type LeasedWork = (LeasedInvocation | LeasedBuild | LeasedSession) & {
  /** W3C trace context of the request that asked for it. */
  traceparent: string | null;
};

/** One live instance of a runner. */
export type Holder = { runnerId: string; instanceId: string };

export type InvocationOutcome =
  | { kind: 'success'; results: string | null }
  | { kind: 'failure'; cause: InvocationCause };

/** A function that a build found. The ids are used where the function or version is new. */
export type BuiltManifest = {
  functionId: string;
  versionId: string;
  name: string;
  sessionConfig: string | null;
  paramsSchema: string | null;
};

export type BuildOutcome =
  | { kind: 'success'; bundleBlobId: string; manifests: BuiltManifest[] }
  | { kind: 'failure'; cause: BuildCause };

export type LeaseOps = {
  /**
   * After a start: counters from rows, and every lease gets a full term, as its runner could not
   * renew meanwhile. The time since the last beat is added to the time of what runs: its runner
   * ends it by a clock that nobody can set, and core only what such a runner forgot.
   */
  recoverWork(wanted: { at: number; leaseMs: number }): void;
  /**
   * The only live instance from now on. What earlier ones ran ends as lost, what never came to them
   * waits again; answers how much ended.
   */
  registerRunner(runner: Holder & { address?: string | undefined; at: number }): number;
  /**
   * Offers up to as many as there are lease ids, fair over projects. Each stays PENDING until its
   * lease is first renewed. LEASE_LOST when superseded.
   */
  leaseWork(
    wanted: Holder & {
      kind: WorkKind;
      leaseIds: string[];
      /** All of that kind that the runner has. Some are kept for projects that hold none. */
      places?: number | undefined;
      leaseMs: number;
      at: number;
    },
  ): LeasedWork[];
  /** Undoes leases whose caller left before it heard of them. What runs is left alone. */
  putBackWork(leaseIds: string[]): void;
  /**
   * Those that are still held, prolonged. The first time moves the work to RUNNING; a session waits
   * for startSession.
   */
  renewLeases(wanted: Holder & { leaseIds: string[]; leaseMs: number; at: number }): string[];
  /** What a live lease is for. */
  findLease(leaseId: string): { kind: WorkKind; id: string; projectId: string } | undefined;
  /**
   * Invocation, session, event, deliveries, job and counters. True again when repeated; false when
   * the lease was lost.
   */
  completeInvocation(wanted: {
    leaseId: string;
    outcome: InvocationOutcome;
    sessionStartedAt: number | null;
    at: number;
  }): boolean;
  /** Build, functions, versions, event, deliveries, job and counters. As completeInvocation. */
  completeBuild(wanted: { leaseId: string; outcome: BuildOutcome; at: number }): boolean;
  /**
   * Ends work whose lease, time or patience is over, `max` pieces at most; answers how many. What
   * never came to its runner waits again.
   */
  sweepWork(wanted: { at: number; max: number }): number;
};

export type LogLineRow = { message: string; at: number; level: string };

export type LogOps = {
  /**
   * Keeps lines it has not seen, up to `linesMax` of `maxBytes` together an owner, then one marker.
   * False when the lease is lost.
   */
  appendLogs(wanted: {
    leaseId: string;
    /** Number of the first line. */
    first: number;
    lines: LogLineRow[];
    maxBytes: number;
    linesMax: number;
    marker: string;
  }): boolean;
  /** Oldest first. */
  listLogs(ownerId: string): LogLineRow[];
};
