import type { QuotaName } from './files.ts';
/** Projects and the API keys that open them, as stored. */

export type ProjectRow = {
  id: string;
  name: string;
  /** In seconds. */
  defaultTimeout: number;
  /** Sessions and invocations that may run at once. */
  concurrency: number;
  createdAt: number;
  updatedAt: number;
};

export type NewApiKey = {
  /** SHA-256 of the whole key: what it is found by. */
  hash: Uint8Array;
  projectId: string;
  /** The public part: what lists and logs name it by. */
  publicId: string;
  /** For people; may be empty. */
  name: string;
  at: number;
};

export type FoundApiKey = { projectId: string; publicId: string; lastUsedAt: number | null };

export type ProjectOps = {
  /**
   * The project, made with its queues; its name is unique, so an existing one is given back
   * unchanged.
   */
  ensureProject(project: ProjectRow): ProjectRow;
  getProject(id: string): ProjectRow | undefined;
  /** What its sessions took so far: running ones up to `at`, each at least one minute. */
  projectUsage(wanted: { id: string; at: number }): { browserMinutes: number; proxyBytes: number };
  /** Adds a key; one that exists already stays as it is. */
  addApiKey(key: NewApiKey): void;
  hasApiKeys(projectId: string): boolean;
  /** The project that a live key opens. `lastUsedAt` is null, or to the minute. */
  findApiKey(hash: Uint8Array): FoundApiKey | undefined;
};

/** Undefined: stays as it is. */
export type LimitChange = {
  sessions: number | undefined;
  invocations: number | undefined;
  queue: number | undefined;
  /** Those that change. */
  quotas: { quota: QuotaName; value: number }[];
};

export type OperatedRow = ProjectRow & {
  /** Invocations that may run at once. */
  invocationsMax: number;
  /** Null: as the service's own setting. */
  queueMax: number | null;
  /** Sessions that live, invocations that run, and those that wait. */
  sessions: number;
  invocations: number;
  queued: number;
  browserMinutes: number;
  proxyBytes: number;
};

export type ApiKeyRow = {
  /** Its public part. */
  id: string;
  projectId: string;
  name: string;
  createdAt: number;
  /** To the minute. */
  lastUsedAt: number | null;
  revokedAt: number | null;
};

export type OperatorOps = {
  /** With its queues; undefined when the name is taken. */
  addProject(wanted: {
    project: ProjectRow;
    limits: LimitChange;
    at: number;
  }): OperatedRow | undefined;
  /** Oldest first; usage of what runs is counted up to `at`. */
  listProjects(wanted: { at: number }): OperatedRow[];
  /** By id or name; undefined when there is none. */
  setLimits(wanted: { project: string; limits: LimitChange; at: number }): OperatedRow | undefined;
  /** By id or name. */
  findProject(project: string): ProjectRow | undefined;
  /** Oldest first; of every project when it is undefined. */
  listApiKeys(projectId: string | undefined): ApiKeyRow[];
  getApiKey(id: string): ApiKeyRow | undefined;
  /** One that is revoked stays as it is. Wakes `revocations`. */
  revokeApiKey(wanted: { id: string; at: number }): ApiKeyRow | undefined;
  /** Writes down a use, to the minute. */
  useApiKey(wanted: { id: string; at: number }): void;
  /** The keys that were revoked since then. */
  revokedKeys(since: number): string[];
};
