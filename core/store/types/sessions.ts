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
  /** Its end was asked for: it takes nobody any more. */
  isReleased: boolean;
  createdAt: number;
  updatedAt: number;
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
  /** Why it ended, one sentence. */
  endReason: string | null;
};

/** Without what only a runner needs, which is up to 64 KiB of each, and what its job tells. */
export type ListedSession = Omit<SessionRow, 'params' | 'isReleased'>;

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
