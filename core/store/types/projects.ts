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
