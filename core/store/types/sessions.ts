/** Sessions, as stored. */

export type SessionStatus = 'PENDING' | 'RUNNING' | 'ERROR' | 'TIMED_OUT' | 'COMPLETED';

export type SessionRow = {
  id: string;
  projectId: string;
  status: SessionStatus;
  region: string;
  contextId: string | null;
  keepAlive: boolean;
  proxyBytes: number;
  /** JSON object. */
  userMetadata: string | null;
  /** JSON object: how its browser is set up. */
  params: string;
  createdAt: number;
  updatedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
  /** Why it ended, one sentence. */
  endReason: string | null;
};

/** Without what only a runner needs, which is up to 64 KiB of each. */
export type ListedSession = Omit<SessionRow, 'params'>;

export type SessionOps = {
  getSession(wanted: { id: string; projectId: string }): SessionRow | undefined;
  /** Newest first. */
  listSessions(wanted: {
    projectId: string;
    status: SessionStatus | undefined;
    /** Only those whose metadata has that text under these keys. */
    metadata?: { keys: string[]; value: string } | undefined;
    max: number;
  }): ListedSession[];
};
