/** What stored resources have in common. Times are Unix milliseconds. */

/** A resource of a project; also the key by which its project reads it. */
export type Owned = { id: string; projectId: string };

export type Dated = { createdAt: number; updatedAt: number };

/** Work that runs once, within a time. */
export type Timed = Dated & {
  startedAt: number | null;
  endedAt: number | null;
  expiresAt: number;
};

/** A lease of a session that ended later than `endedAfter`, whose runner still sends files. */
export type LateLease = { leaseId: string; endedAfter: number };

/** How a session has ended. `reason`: one sentence for its user. */
export type EndedSession = {
  id: string;
  status: 'COMPLETED' | 'TIMED_OUT' | 'ERROR';
  reason: string;
};
