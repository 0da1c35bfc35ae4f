/** The JSON that the console reads: proto/tabern/v1/console.proto and the parts of /v1 in use. */

export type SessionStatus = 'PENDING' | 'RUNNING' | 'ERROR' | 'TIMED_OUT' | 'COMPLETED';
/** Times are ISO 8601. */
export type Session = {
  id: string;
  status: SessionStatus;
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  expiresAt: string;
  endReason?: string;
  userMetadata?: Record<string, unknown>;
  contextId?: string;
  invocationId?: string;
  functionId?: string;
  functionName?: string;
  region: string;
  keepAlive: boolean;
  proxyBytes: number;
  isReleased: boolean;
  labels: string[];
};

export type SessionEvent = {
  at: string;
  type: string;
  text?: string;
  ref?: string;
  endedAt?: string;
  size?: number;
};

export type RunStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';
export type Run = {
  id: string;
  status: RunStatus;
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  functionId: string;
  functionName: string;
  versionId: string;
  sessionId: string;
  causeCode?: string;
  causeMessage?: string;
  trigger?: Trigger;
};
/** What started a run; absent when a request did. */
export type Trigger = { type: string; scheduleId: string; scheduledFor: string };
/** GET /v1/functions/invocations/{id}. */
export type RunDetail = {
  id: string;
  status: RunStatus;
  createdAt: string;
  startedAt?: string;
  endedAt?: string;
  functionId: string;
  versionId: string;
  sessionId: string;
  params?: unknown;
  results?: unknown;
  cause?: { code: string; message?: string; name?: string; stack?: string };
  trigger?: Trigger;
};
/** Times in ms since the runner received the run. */
export type RunStep = { name: string; startMs: number; endMs: number; failed: boolean };

export type Overview = {
  projectId: string;
  projectName: string;
  sessions: number;
  sessionsMax: number;
  invocations: number;
  invocationsMax: number;
  queued: number;
  sessionsWaiting: number;
  builds: number;
  failingFunctions: FailingFunction[];
  failingWebhooks: FailingWebhook[];
  hasSessions: boolean;
  hasFunctions: boolean;
  hasWebhooks: boolean;
  service?: ServiceState;
};
/** What each project may know of the service. */
export type ServiceState = {
  hasRunner: boolean;
  browserFailing: boolean;
  spares: number;
  browsers: { product: string; builtAt?: string }[];
  browserStartedAt?: string;
  diskFreeBytes: number;
  diskLow: boolean;
};
export type FailingFunction = {
  id: string;
  name: string;
  failed: number;
  invocationId: string;
  failedAt: string;
  causeMessage?: string;
};
export type FailingWebhook = {
  id: string;
  endpoint: string;
  status: 'ENABLED' | 'DISABLED';
  failingSince?: string;
  disabledReason?: string;
};
export type Bucket = { at: string; key: string; count: number };

export type Fn = { id: string; name: string; createdAt: string; updatedAt: string };

/** GET /v1/sessions/{id}/debug. */
export type LiveView = {
  debuggerUrl: string;
  pages: { id: string; url: string; title: string }[];
};
/** GET /v1/sessions/{id}/replays. */
export type Replays = { pages: ReplayPage[] };
export type ReplayPage = { pageId: string; url: string; startTimeMs: number; endTimeMs: number };
export type Download = {
  id: string;
  filename: string;
  mimeType: string;
  size: number;
  checksum: string;
  createdAt: string;
};

/** What changed: proto/tabern/v1/console.proto, WatchChangesResponse. */
export type Change = { kind: string; ids: string[] };
export type SearchResult = {
  kind: string;
  id: string;
  matched: string;
  text?: string;
  createdAt: string;
  webhookId?: string;
};

/** console_data.proto and settings.proto. */
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
