/** Stored objects, usage and settings of a project as the console reads them. */
import type { Listed, ListWanted } from './console.ts';

export type ConsoleContextRow = {
  id: string;
  name: string | null;
  createdAt: number;
  /** In bytes; null while nothing was saved. */
  size: number | null;
  savedAt: number | null;
  saves: number;
  /** The session that saved the content; null for an upload. */
  savedBy: string | null;
  /** Open sessions that loaded it, newest first, 4 at most. */
  sessionIds: string[];
};

export type ConsoleDownloadRow = {
  id: string;
  sessionId: string;
  filename: string;
  mimeType: string;
  size: number;
  checksum: string;
  createdAt: number;
};

export type ConsoleDownloadsWanted = ListWanted & { sessionId?: string | undefined };

export type ConsoleExtensionRow = { id: string; fileName: string; size: number; createdAt: number };

export type UsageSums = {
  sessions: number;
  browserMinutes: number;
  proxyBytes: number;
  runs: number;
  failedRuns: number;
};

/** `day`: since 1970, in UTC. */
export type UsageDay = UsageSums & { day: number };
export type UsageOfFunction = UsageSums & { id: string; name: string | null };

export type ConsoleLimitsRow = {
  name: string;
  createdAt: number;
  defaultTimeout: number;
  sessions: number;
  invocations: number;
  /** Null: the service's setting. */
  queue: number | null;
};

export type ConsoleDataOps = {
  consoleContexts(wanted: ListWanted): Listed<ConsoleContextRow>;
  consoleDownloads(wanted: ConsoleDownloadsWanted): Listed<ConsoleDownloadRow>;
  consoleExtensions(wanted: ListWanted): Listed<ConsoleExtensionRow>;
  /** From that day on: each day with a use, oldest first; functions by minutes, 100 at most. */
  consoleUsage(wanted: { projectId: string; fromDay: number }): {
    days: UsageDay[];
    functions: UsageOfFunction[];
  };
  /** Undefined when there is no such project. */
  consoleLimits(projectId: string): ConsoleLimitsRow | undefined;
  /** Removes up to `max` sums of days before `day`; returns their number. */
  purgeUsage(wanted: { day: number; max: number }): number;
};
