/** What the console reads: lists over a whole project, each call with a limit of rows. */
import type { AttemptRow, DeliveryRow, DeliveryState } from './deliveries.ts';
import type { BuildStatus } from './functions.ts';
import type { InvocationStatus } from './invocations.ts';
import type { Owned } from './rows.ts';
import type { SessionStatus } from './sessions.ts';

/** A place in a list that is newest first. Places are ordered by time, then by id. */
export type Position = { at: number; id: string };

/** Absent filters match every row; all of them must match. */
export type ListWanted = {
  projectId: string;
  /** In lower case: part of an id or a name. */
  text?: string | undefined;
  /** Accepted at this time or later, and before `to`. */
  from: number;
  to: number;
  /** Only rows behind this place. */
  before?: Position | undefined;
  limit: number;
};

/**
 * `next`: the place behind which the list goes on; absent at its end. A call examines a limited
 * number of rows: there may be fewer than `limit`, or none, and still a `next`.
 */
export type Listed<Row> = { rows: Row[]; next?: Position | undefined };

export type ConsoleSessionRow = {
  id: string;
  status: SessionStatus;
  createdAt: number;
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
  endReason: string | null;
  /** JSON object. */
  userMetadata: string | null;
  contextId: string | null;
  invocationId: string | null;
  functionId: string | null;
  functionName: string | null;
  region: string;
  keepAlive: boolean;
  proxyBytes: number;
  isReleased: boolean;
  labels: string[];
};

export type ConsoleSessionsWanted = ListWanted & {
  status?: SessionStatus | undefined;
  functionId?: string | undefined;
  contextId?: string | undefined;
  region?: string | undefined;
  /** Sessions whose metadata has that text under these keys; they are ordered by id. */
  metadata?: { keys: string[]; value: string } | undefined;
  /** Sessions that have the label of that key; they are ordered by id. */
  labelKey?: string | undefined;
};

/** Without params and results. */
export type ConsoleInvocationRow = {
  id: string;
  status: InvocationStatus;
  createdAt: number;
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
  functionId: string;
  functionName: string;
  versionId: string;
  sessionId: string;
  /** JSON of an InvocationCause; only when FAILED. */
  cause: string | null;
  /** As in an InvocationRow. */
  scheduleId: string | null;
  scheduledFor: number | null;
};

export type ConsoleInvocationsWanted = ListWanted & {
  status?: InvocationStatus | undefined;
  functionId?: string | undefined;
};

export type PublishedRow = { functionId: string; name: string; versionId: string };

export type ConsoleBuildRow = {
  id: string;
  status: BuildStatus;
  createdAt: number;
  startedAt: number | null;
  endedAt: number | null;
  entrypoint: string;
  /** JSON of a BuildCause. */
  cause: string | null;
  /** By name, 20 at most. */
  published: PublishedRow[];
};

export type ConsoleBuildsWanted = ListWanted & {
  status?: BuildStatus | undefined;
  functionId?: string | undefined;
};

/** A page of functions or versions: `beforeId` is the last id of the page before. */
export type ByIdWanted = { projectId: string; beforeId: string; limit: number };

export type ConsoleFunctionRow = {
  id: string;
  name: string;
  createdAt: number;
  updatedAt: number;
  /** Of the newest version, with its build. */
  versionId: string | null;
  buildId: string | null;
  /** 101 stands for more. */
  versions: number;
};

/** A run as figures need it. */
export type FunctionRunRow = {
  id: string;
  functionId: string;
  status: InvocationStatus;
  createdAt: number;
  startedAt: number | null;
  endedAt: number | null;
};

export type InvokedFunctionRow = Omit<ConsoleFunctionRow, 'buildId' | 'versions'> & {
  /** JSON schema of the newest version. */
  paramsSchema: string | null;
  /** The newest invocation, and the JSON of its params. */
  invocationId: string | null;
  lastParams: string | null;
};

export type ConsoleVersionRow = {
  id: string;
  createdAt: number;
  buildId: string;
  entrypoint: string;
  archiveBytes: number | null;
  bundleBytes: number | null;
  bundleSha256: string | null;
  hasSchema: boolean;
};

export type ConsoleLogLineRow = { number: number; level: string; message: string; at: number };

/** With the last attempt that ended. */
export type ConsoleDeliveryRow = DeliveryRow & {
  endpoint: string;
  lastOutcome: AttemptRow['outcome'];
  lastStatusCode: number | null;
  lastLatencyMs: number | null;
};

/** The id of a place is that of the event and of the webhook, with `_` between them. */
export type ConsoleDeliveriesWanted = ListWanted & {
  state?: DeliveryState | undefined;
  webhookId?: string | undefined;
  resourceId?: string | undefined;
  eventType?: string | undefined;
};

export type FailingFunctionRow = {
  id: string;
  name: string;
  /** Its FAILED invocations, of the newest 1,000 of the project. */
  failed: number;
  /** The newest of them, and when it was accepted. */
  invocationId: string;
  failedAt: number;
  /** JSON of an InvocationCause. */
  cause: string | null;
};

export type FailingWebhookRow = {
  id: string;
  endpoint: string;
  status: 'enabled' | 'disabled';
  failingSince: number | null;
  disabledReason: string | null;
};

export type OverviewRow = {
  name: string;
  /** Those that count against the limit. */
  sessions: number;
  sessionsMax: number;
  sessionsWaiting: number;
  /** Running ones. */
  invocations: number;
  invocationsMax: number;
  /** Waiting invocations. */
  queued: number;
  builds: number;
  /** By the number of failures, 20 at most. */
  failingFunctions: FailingFunctionRow[];
  /** Those that fail longest first, 20 at most. */
  failingWebhooks: FailingWebhookRow[];
  hasSessions: boolean;
  hasFunctions: boolean;
  hasWebhooks: boolean;
};

/** `functionId`: only its invocations. */
export type ConsoleCountsWanted = {
  projectId: string;
  kind: 'sessions' | 'invocations' | 'builds' | 'deliveries';
  group?: string | undefined;
  functionId?: string | undefined;
  bucketMs: number;
  from: number;
  to: number;
  before?: Position | undefined;
};

/** `bucket`: its number since 1970. */
export type ConsoleCount = { bucket: number; key: string; count: number };

/** Offsets of pages are milliseconds since the session's start. */
export type SessionCourse = {
  createdAt: number;
  startedAt: number | null;
  releasedAt: number | null;
  endedAt: number | null;
  endReason: string | null;
  invocationId: string | null;
  pages: { pageId: number; url: string; startMs: number; endMs: number; isClosed: boolean }[];
  downloads: { id: string; filename: string; size: number; createdAt: number }[];
  /** Of its invocation, by event; ended when the last of the event's deliveries has. */
  deliveries: { id: string; eventType: string; createdAt: number; doneAt: number | null }[];
};

export type SearchedKind = Exclude<ChangedKind, 'extensions' | 'keys'>;

export type FoundRow = {
  kind: SearchedKind;
  id: string;
  matched: 'id' | 'name' | 'label' | 'metadata' | 'url';
  text: string | null;
  createdAt: number;
  webhookId: string | null;
};

export type ChangedKind =
  | 'sessions'
  | 'invocations'
  | 'builds'
  | 'deliveries'
  | 'functions'
  | 'webhooks'
  | 'contexts'
  | 'downloads'
  | 'extensions'
  | 'keys';

/** `ids`: of the rows that changed, of deliveries those of the events; undefined for many. */
export type Changes = { kind: ChangedKind; ids: string[] | undefined };

/** A secret of a webhook, sealed. */
export type SecretRow = {
  seq: number;
  sealed: Uint8Array;
  createdAt: number;
  expiresAt: number | null;
};

/** `day`: days since 1970, UTC. `answers`: JSON of AnswerTimes. */
export type WebhookDayRow = {
  day: number;
  delivered: number;
  failed: number;
  lost: number;
  answers: string;
};

export type WebhookHealthRow = {
  webhookId: string;
  countedFrom: number;
  /** Without those on which nothing happened. */
  days: WebhookDayRow[];
  /** One more than `backlogMax` when more wait. */
  backlog: number;
};

/** Null for attempts of earlier releases. */
export type SignedAttemptRow = AttemptRow & {
  /** In Unix seconds. */
  signedAtS: number | null;
  /** Sequence numbers of the secrets, newest first, with spaces between. */
  signedBy: string | null;
};

export type WholeDelivery = {
  delivery: ConsoleDeliveryRow;
  body: Uint8Array;
  /** Newest first. */
  attempts: SignedAttemptRow[];
  secrets: SecretRow[];
};

/** An event that was sent to a webhook, and the timestamps of its attempts, newest first. */
export type SentEvent = { body: Uint8Array; signedAtS: number[] };

export type ConsoleOps = {
  consoleSessions(wanted: ConsoleSessionsWanted): Listed<ConsoleSessionRow>;
  consoleSession(wanted: Owned): ConsoleSessionRow | undefined;
  /** Those of the ids whose session runs and takes clients. */
  consoleRunning(wanted: { projectId: string; ids: readonly string[] }): string[];
  consoleInvocations(wanted: ConsoleInvocationsWanted): Listed<ConsoleInvocationRow>;
  /** As in the list. */
  consoleInvocation(wanted: Owned): ConsoleInvocationRow | undefined;
  /** JSON of InvocationStep[]; `steps` is null when none were reported. */
  consoleInvocationSteps(wanted: Owned): { steps: string | null } | undefined;
  consoleBuilds(wanted: ConsoleBuildsWanted): Listed<ConsoleBuildRow>;
  consoleFunctions(wanted: ByIdWanted): ConsoleFunctionRow[];
  /** The newest runs of a project since `from` and behind `before`. */
  consoleFunctionRuns(wanted: {
    projectId: string;
    from: number;
    before: Position;
    max: number;
  }): FunctionRunRow[];
  consoleFunction(wanted: Owned): InvokedFunctionRow | undefined;
  /** Undefined when the project has no such function. */
  consoleVersions(wanted: ByIdWanted & { functionId: string }): ConsoleVersionRow[] | undefined;
  /** Lines of an invocation or a build from that number on; undefined when there is neither. */
  consoleLogLines(wanted: Owned & { from: number; max: number }): ConsoleLogLineRow[] | undefined;
  consoleDeliveries(wanted: ConsoleDeliveriesWanted): Listed<ConsoleDeliveryRow>;
  /** Newest first; only `webhookId` where it is given. `fromDay`: the first day. */
  consoleWebhookHealth(wanted: {
    projectId: string;
    webhookId: string | undefined;
    fromDay: number;
    webhooksMax: number;
    backlogMax: number;
  }): WebhookHealthRow[];
  /** `id`: of the event. */
  consoleDelivery(wanted: {
    projectId: string;
    webhookId: string;
    id: string;
    attemptsMax: number;
  }): WholeDelivery | undefined;
  /** Undefined when there is no such webhook. */
  consoleSecrets(wanted: Owned): SecretRow[] | undefined;
  /** Of the project's other webhooks, `max` at most. */
  consoleOtherSecrets(
    wanted: Owned & { max: number },
  ): (SecretRow & { webhookId: string; endpoint: string })[];
  consoleSentEvent(wanted: {
    webhookId: string;
    eventId: string;
    attemptsMax: number;
  }): SentEvent | undefined;
  /** `since`: of the failures. Undefined when there is no such project. */
  consoleOverview(wanted: { projectId: string; since: number }): OverviewRow | undefined;
  /** The newest rows behind `before`; `next` is absent when all were counted. */
  consoleCounts(wanted: ConsoleCountsWanted): {
    counts: ConsoleCount[];
    next?: Position | undefined;
  };
  consoleSessionCourse(wanted: Owned): SessionCourse | undefined;
  /** Objects with that id, `max` at most of each kind. */
  consoleFindId(wanted: Owned & { max: number }): FoundRow[];
  /** Step by step, from 0, in the order of the answer; undefined when there are no more steps. */
  consoleFindText(wanted: {
    projectId: string;
    /** In lower case. */
    text: string;
    step: number;
    max: number;
  }): FoundRow[] | undefined;
  /** From now on, changes of the project are kept in memory, and wake `changes:<project>`. */
  watchChanges(projectId: string): void;
  unwatchChanges(projectId: string): void;
  /** What changed since the last call, each kind once. */
  takeChanges(projectId: string): Changes[];
};
