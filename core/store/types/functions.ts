/** Builds, and the functions and versions they make, as stored. */

export type BuildStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';

export type BuildCause = { code: string; message: string };

export type BuildRow = {
  id: string;
  projectId: string;
  entrypoint: string;
  status: BuildStatus;
  /** JSON of a BuildCause. */
  cause: string | null;
  createdAt: number;
  updatedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
};

export type FunctionRow = {
  id: string;
  projectId: string;
  name: string;
  createdAt: number;
  updatedAt: number;
};

export type VersionRow = {
  id: string;
  projectId: string;
  functionId: string;
  buildId: string;
  /** JSON object. */
  sessionConfig: string | null;
  /** JSON schema. */
  paramsSchema: string | null;
  createdAt: number;
};

/** A function and the version one build made of it. */
export type BuiltFunction = { function: FunctionRow; version: VersionRow };

export type Page<Row> = { rows: Row[]; total: number };

export type NewBuild = {
  id: string;
  projectId: string;
  entrypoint: string;
  archiveBlobId: string;
  /** When its waiting ends. */
  waitUntil: number;
  expiresAt: number;
  /** Builds that may wait in the project. */
  queueMax: number;
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  at: number;
};

export type BuildOps = {
  /** The build and its place in the queue. Throws QUEUE_FULL. */
  createBuild(build: NewBuild): BuildRow;
  /** Its functions are those of a COMPLETED build. */
  getBuild(wanted: {
    id: string;
    projectId: string;
  }): { build: BuildRow; functions: BuiltFunction[] } | undefined;
  /** Newest first. */
  listBuilds(wanted: {
    projectId: string;
    status: string | undefined;
    offset: number;
    limit: number;
  }): Page<{ build: BuildRow; functions: BuiltFunction[] }>;
};

export type FunctionOps = {
  getFunction(wanted: { id: string; projectId: string }): FunctionRow | undefined;
  /** Newest first. */
  listFunctions(wanted: { projectId: string; offset: number; limit: number }): Page<FunctionRow>;
  getVersion(wanted: { id: string; projectId: string }): VersionRow | undefined;
  /** Newest first. */
  listVersions(wanted: {
    functionId: string;
    projectId: string;
    offset: number;
    limit: number;
  }): Page<VersionRow>;
  /** What an invocation runs. */
  newestVersion(wanted: { functionId: string; projectId: string }): VersionRow | undefined;
};
