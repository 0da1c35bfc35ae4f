/** Work under leases: runners acquire, renew and complete invocations, builds and sessions. */

import type { LeasedContext } from './contexts.ts';
import type { LeasedExtension } from './files.ts';
import type { BuildCause } from './functions.ts';
import type { InvocationCause } from './invocations.ts';
import type { EndedSession, LateLease } from './rows.ts';

export type WorkKind = 'invocation' | 'build' | 'session';

type Leased<Kind extends WorkKind> = {
  kind: Kind;
  leaseId: string;
  id: string;
  projectId: string;
  timeoutMs: number;
};

/** What the browser of a session loads and trusts. */
export type Loaded = {
  /** Absent for none, or a deleted one. */
  context?: LeasedContext;
  extensions: LeasedExtension[];
  /** In PEM. */
  certificates: string[];
};

export type LeasedInvocation = Leased<'invocation'> &
  Loaded & {
    sessionId: string;
    functionId: string;
    versionId: string;
    functionName: string;
    bundleBlobId: string;
    bundleSha256: string;
    params: string;
    sessionParams: string;
    region: string;
    /** How many secrets its function has. */
    secretCount: number;
  };

export type LeasedBuild = Leased<'build'> & { entrypoint: string; archiveBlobId: string };

export type LeasedSession = Leased<'session'> & Loaded & { params: string; keepAlive: boolean };

export type LeasedWork = (LeasedInvocation | LeasedBuild | LeasedSession) & {
  /** W3C trace context of the request that created it. */
  traceparent: string | null;
};

/** One live instance of a runner. */
export type Holder = { runnerId: string; instanceId: string };

export type InvocationOutcome =
  | { kind: 'success'; results: string | null }
  | { kind: 'failure'; cause: InvocationCause };

/** A function in a bundle. Its ids are used when the function or the version is new. */
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

/** Work that core ended without its runner. `session`: the one that ended with it. */
export type GivenUp = { kind: WorkKind; session: EndedSession | undefined };

export type LeaseOps = {
  /**
   * After a start: recounts the queues, and prolongs every lease by a full term, because runners
   * could not renew meanwhile. Running work gets the time since the last heartbeat in addition: its
   * runner ends it by a monotonic clock, and core only work that its runner did not end.
   */
  recoverWork(wanted: { at: number; leaseMs: number }): void;
  /**
   * Makes the instance the only live one of the runner. Running work of earlier instances ends as
   * lost, offered work waits again. Returns what ended.
   */
  registerRunner(runner: Holder & { address?: string | undefined; at: number }): GivenUp[];
  /**
   * Offers up to one piece of work for each lease id, fair over projects. It stays PENDING until
   * the first renewal of its lease. Throws LEASE_LOST for a superseded instance, DRAINING for one
   * that drains.
   */
  leaseWork(
    wanted: Holder & {
      kind: WorkKind;
      leaseIds: string[];
      /** The runner's places of that kind; some are reserved for projects that hold none. */
      places?: number | undefined;
      leaseMs: number;
      at: number;
    },
  ): LeasedWork[];
  /**
   * Undoes leases whose caller disconnected before the answer, or whose work cannot be read;
   * running work keeps its lease. With `isQuiet` no poll is woken: it would find the same.
   */
  putBackWork(wanted: { leaseIds: string[]; isQuiet?: boolean }): void;
  /**
   * Prolongs the leases that the instance still holds, and returns them. The first renewal moves
   * work to RUNNING; a session is RUNNING after startSession. With `isDraining` the instance leases
   * no more work.
   */
  renewLeases(
    wanted: Holder & {
      leaseIds: string[];
      isDraining?: boolean | undefined;
      leaseMs: number;
      at: number;
    },
  ): string[];
  /** A session that core has given up; for a recording, also one that ended with recordings. */
  findLateSession(
    wanted: LateLease & { isRecording: boolean },
  ): { sessionId: string; projectId: string } | undefined;
  /** The work under a live lease. */
  findLease(leaseId: string): { kind: WorkKind; id: string; projectId: string } | undefined;
  /**
   * Ends the invocation and its session, with event, deliveries, job and counters. True again when
   * repeated; false when the lease was lost.
   */
  completeInvocation(wanted: {
    leaseId: string;
    outcome: InvocationOutcome;
    sessionStartedAt: number | null;
    /** Why its browser ended by itself. */
    browserLoss?: string | undefined;
    /** JSON of InvocationStep[]. */
    steps?: string | undefined;
    at: number;
  }): boolean;
  /** As completeInvocation, for a build with its functions and versions. */
  completeBuild(wanted: { leaseId: string; outcome: BuildOutcome; at: number }): boolean;
  /**
   * Ends up to `max` pieces of work whose time has expired, or whose lease has expired more than
   * `lostAfterMs` before (default 0); returns them. Work that has not begun waits again when
   * its lease expires. Handoffs whose time is over expire, too, and do not count.
   */
  sweepWork(wanted: { at: number; lostAfterMs?: number; max: number }): GivenUp[];
};

export type LineLimits = { maxBytes: number; linesMax: number; marker: string };
export type LogLineRow = { message: string; at: number; level: string };

export type LogOps = {
  /**
   * Appends new lines, up to `linesMax` and `maxBytes` for each owner, then one marker. False when
   * the lease is lost.
   */
  appendLogs(
    wanted: LineLimits & {
      leaseId: string;
      /** Number of the first line. */
      first: number;
      lines: LogLineRow[];
    },
  ): boolean;
  /** Oldest first. */
  listLogs(ownerId: string): LogLineRow[];
};
