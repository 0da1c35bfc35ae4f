/** The JSON of contexts, files, usage and settings: console_data.proto, settings.proto. */

export type Context = {
  id: string;
  name?: string;
  createdAt: string;
  size?: number;
  savedAt?: string;
  saves: number;
  savedBy?: string;
  sessionIds: string[];
};

/** A file that a page downloaded. */
export type StoredFile = {
  id: string;
  sessionId: string;
  filename: string;
  mimeType: string;
  size: number;
  checksum: string;
  createdAt: string;
};
export type Extension = { id: string; fileName: string; size: number; createdAt: string };

export type Sums = {
  sessions: number;
  browserMinutes: number;
  proxyBytes: number;
  runs: number;
  failedRuns: number;
};
export type UsageDay = { at: string; sums: Sums };
export type UsageOfFunction = { id: string; name?: string; sums: Sums };
export type Usage = {
  days: UsageDay[];
  functions: UsageOfFunction[];
  browserMinutes: number;
  proxyBytes: number;
};
/** GET /v1/projects/{id}/usage. */
export type ProjectUsage = {
  browserMinutes: number;
  proxyBytes: number;
  storage: Record<string, { used: number; limit: number }>;
};

export type ProjectKey = {
  id: string;
  name: string;
  createdAt: string;
  lastUsedAt?: string;
  revokedAt?: string;
  madeBy?: string;
  logins: number;
};
export type Keys = { keys: ProjectKey[]; ownKeyId?: string };
export type Settings = {
  projectId: string;
  projectName: string;
  createdAt: string;
  defaultTimeout: number;
  limits: Record<string, number>;
  extensionsMax: number;
  keysMax: number;
  retention: { kind: string; days: number }[];
  webhooks: {
    webhooksMax: number;
    ratePerSecond: number;
    retrySeconds: number[];
    disableAfterHours: number;
  };
};
