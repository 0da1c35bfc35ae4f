/** What the console reads: lists over a whole project, each call with a limit of rows. */
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
};

export type ConsoleSessionsWanted = ListWanted & {
  status?: SessionStatus | undefined;
  functionId?: string | undefined;
  contextId?: string | undefined;
  /** Sessions whose metadata has that text under these keys; they are ordered by id. */
  metadata?: { keys: string[]; value: string } | undefined;
};

export type ConsoleOps = {
  consoleSessions(wanted: ConsoleSessionsWanted): Listed<ConsoleSessionRow>;
  consoleSession(wanted: Owned): ConsoleSessionRow | undefined;
};
