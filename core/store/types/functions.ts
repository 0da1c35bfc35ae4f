/** Builds, and the functions and versions that they publish, as stored. */
import type { Dated, Owned, Timed } from './rows.ts';

export type BuildStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';

export type BuildCause = { code: string; message: string };

export type BuildRow = Owned &
  Timed & {
    entrypoint: string;
    status: BuildStatus;
    /** JSON of a BuildCause. */
    cause: string | null;
  };

export type FunctionRow = Owned &
  Dated & {
    name: string;
  };

export type VersionRow = Owned & {
  functionId: string;
  buildId: string;
  /** JSON object. */
  sessionConfig: string | null;
  /** JSON schema. */
  paramsSchema: string | null;
  createdAt: number;
};

/** A function, and the version that one build published. */
export type BuiltFunction = { function: FunctionRow; version: VersionRow };

/** A page of what matches the filter. */
export type PageOf<Filter> = Filter & { offset: number; limit: number };
/** `total` is over all pages. */
export type Page<Row> = { rows: Row[]; total: number };

export type NewBuild = Owned & {
  entrypoint: string;
  archiveBlobId: string;
  /** The end of its wait for a runner. */
  waitUntil: number;
  expiresAt: number;
  /** Limit of the project's waiting builds. */
  queueMax: number;
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  at: number;
};

export type BuildOps = {
  /** Stores the build and its job. Throws QUEUE_FULL. */
  createBuild(build: NewBuild): BuildRow;
  /** Only a COMPLETED build has functions. */
  getBuild(wanted: Owned): { build: BuildRow; functions: BuiltFunction[] } | undefined;
  /** Newest first. */
  listBuilds(
    wanted: PageOf<{ projectId: string; status: string | undefined }>,
  ): Page<{ build: BuildRow; functions: BuiltFunction[] }>;
};

export type FunctionOps = {
  getFunction(wanted: Owned): FunctionRow | undefined;
  /** Newest first. */
  listFunctions(wanted: PageOf<{ projectId: string }>): Page<FunctionRow>;
  getVersion(wanted: Owned): VersionRow | undefined;
  /** Newest first. */
  listVersions(wanted: PageOf<{ functionId: string; projectId: string }>): Page<VersionRow>;
  /** The version that an invocation runs. */
  newestVersion(wanted: { functionId: string; projectId: string }): VersionRow | undefined;
};

export type FunctionDeletionOps = {
  /**
   * Deletes it with its schedules: its name and its idempotency keys are free, and no other
   * operation finds it, its versions, its invocations, or the builds that purgeFunctions removes.
   * Nothing changes while it has `open` invocations, which wait or run. Undefined when there is
   * none.
   */
  deleteFunction(wanted: Owned & { at: number }): { open: number } | undefined;
  /**
   * Removes up to `max` rows of deleted functions, or of one of them: invocations and builds with
   * their logs, and versions. A build with another function's version stays. `dropped`: the blobs
   * of removed builds, without rows.
   */
  purgeFunctions(purge: { functionId?: string; max: number }): {
    rows: number;
    dropped: string[];
  };
};
