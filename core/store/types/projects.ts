import type { QuotaName } from './files.ts';
import type { Dated } from './rows.ts';
/** Projects and their API keys, as stored. */

export type ProjectRow = Dated & {
  id: string;
  name: string;
  /** In seconds. */
  defaultTimeout: number;
  /** Sessions and invocations that may run at once. */
  concurrency: number;
};

export type NewApiKey = {
  /** SHA-256 of the whole key, by which it is found. */
  hash: Uint8Array;
  projectId: string;
  /** The public part, for lists and logs. */
  publicId: string;
  /** For people; may be empty. */
  name: string;
  at: number;
};

export type FoundApiKey = { projectId: string; publicId: string; lastUsedAt: number | null };

export type ProjectOps = {
  /**
   * Creates the project with its queues, or returns the existing project of that name unchanged.
   */
  ensureProject(project: ProjectRow): ProjectRow;
  getProject(id: string): ProjectRow | undefined;
  /** Usage of its sessions: running ones up to `at`, each at least one minute. */
  projectUsage(wanted: { id: string; at: number }): { browserMinutes: number; proxyBytes: number };
  /** An existing key is not changed. */
  addApiKey(key: NewApiKey): void;
  hasApiKeys(projectId: string): boolean;
  /** The project that a live key opens. `lastUsedAt` is null, or to the minute. */
  findApiKey(hash: Uint8Array): FoundApiKey | undefined;
};

/** Undefined: unchanged. */
export type LimitChange = {
  sessions: number | undefined;
  invocations: number | undefined;
  queue: number | undefined;
  /** The quotas that change. */
  quotas: { quota: QuotaName; value: number }[];
};

export type OperatedRow = ProjectRow & {
  /** Invocations that may run at once. */
  invocationsMax: number;
  /** Null: the service's setting. */
  queueMax: number | null;
  /** Open sessions, running invocations, waiting invocations. */
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

/** A key as its project lists it. */
export type ProjectKeyRow = Omit<ApiKeyRow, 'projectId'> & {
  /** Public part of the key with which it was made; empty: a login by link; null: the operator. */
  madeBy: string | null;
  /** Logins to the console with it that have not ended. */
  logins: number;
};

/** Bounds of the keys of one project. */
export type KeyLimits = {
  /** Valid keys. */
  max: number;
  /** Keys that are valid or were revoked since `since`. */
  recentMax: number;
  since: number;
  /** Keys that were revoked earlier than `since` and stay. */
  keptMax: number;
};

export type KeyOps = {
  /** The valid ones first, newest first; of revoked ones the last `revokedMax`. */
  listProjectKeys(wanted: { projectId: string; revokedMax: number; at: number }): ProjectKeyRow[];
  /**
   * `full`, and nothing added, when a limit is reached. Removes the oldest revoked keys that
   * projects made; the operator's stay, so that a revoked preset key is not added again.
   */
  createProjectKey(key: NewApiKey & { madeBy: string }, limits: KeyLimits): 'added' | 'full';
  /**
   * `last`, and nothing changed, for the only valid key unless `evenLast`. A revoked key is not
   * changed. Undefined when the project has no such key. Wakes `revocations`.
   */
  revokeProjectKey(wanted: {
    id: string;
    projectId: string;
    evenLast: boolean;
    at: number;
  }): 'revoked' | 'last' | undefined;
};

export type OperatorOps = {
  /** With its queues; undefined when the name is taken. */
  addProject(wanted: {
    project: ProjectRow;
    limits: LimitChange;
    at: number;
  }): OperatedRow | undefined;
  /** Oldest first, with usage up to `at`. */
  listProjects(wanted: { at: number }): OperatedRow[];
  /** By id or name; undefined when there is none. */
  setLimits(wanted: { project: string; limits: LimitChange; at: number }): OperatedRow | undefined;
  /** By id or name. */
  findProject(project: string): ProjectRow | undefined;
  /** Oldest first; of every project when it is undefined. */
  listApiKeys(projectId: string | undefined): ApiKeyRow[];
  getApiKey(id: string): ApiKeyRow | undefined;
  /** A revoked key is not changed. Wakes `revocations`. */
  revokeApiKey(wanted: { id: string; at: number }): ApiKeyRow | undefined;
  /** Stores the time of the last use, to the minute. */
  useApiKey(wanted: { id: string; at: number }): void;
  /** Ids of keys revoked since then. */
  revokedKeys(since: number): string[];
};
