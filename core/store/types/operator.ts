/** What the operator pages of the console read: lists over all projects. */
import type { Listed, Position } from './console.ts';
import type { WorkKind } from './leases.ts';
import type { SessionStatus } from './sessions.ts';

export type OperatorSessionRow = {
  id: string;
  projectId: string;
  projectName: string;
  status: SessionStatus;
  createdAt: number;
  startedAt: number | null;
  endedAt: number | null;
  endReason: string | null;
  isReleased: boolean;
};

export type OperatorQueueRow = {
  projectId: string;
  projectName: string;
  kind: WorkKind;
  waiting: number;
  running: number;
  limit: number;
  vtime: number;
};

export type OperatorViewOps = {
  /** `isOpen`: only those that start or run. */
  allSessions(wanted: {
    isOpen: boolean;
    before?: Position | undefined;
    limit: number;
  }): Listed<OperatorSessionRow>;
  /** With work, by kind and fairness key; `max` at most. */
  busyQueues(max: number): OperatorQueueRow[];
  /** Running work by the runner that holds it. */
  heldWork(): { runnerId: string; running: number }[];
};
