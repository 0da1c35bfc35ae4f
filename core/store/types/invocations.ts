/** Invocations, and the schedules that start them, as stored. */
import type { Page, PageOf } from './functions.ts';
import type { Dated, EndedSession, Owned, Timed } from './rows.ts';

export type InvocationStatus = 'PENDING' | 'RUNNING' | 'COMPLETED' | 'FAILED';

export type InvocationCause = {
  code: 'WORKLOAD_ERROR' | 'TIMED_OUT' | 'INTERNAL_ERROR';
  message: string;
  name?: string;
  stack?: string;
};

/** In JSON: name, start and end in ms since the runner received the work, 1 if it failed. */
export type InvocationStep = [name: string, startMs: number, endMs: number, failed: 0 | 1];

export type InvocationRow = Owned &
  Timed & {
    functionId: string;
    versionId: string;
    sessionId: string;
    region: string;
    status: InvocationStatus;
    /** JSON object. */
    params: string;
    /** JSON; null when the handler returned nothing. */
    results: string | null;
    /** JSON of an InvocationCause. */
    cause: string | null;
    timeoutMs: number;
    /** The schedule that started it; null when a request did. */
    scheduleId: string | null;
    /** The time of its cron text. */
    scheduledFor: number | null;
  };

export type NewInvocation = {
  id: string;
  sessionId: string;
  projectId: string;
  functionId: string;
  versionId: string;
  region: string;
  /** JSON object. */
  params: string;
  /** JSON object: the session's params, merged. */
  sessionParams: string;
  contextId: string | null;
  /** JSON object. */
  userMetadata: string | null;
  timeoutMs: number;
  /** The end of its wait for a runner. */
  waitUntil: number;
  /** Limit of the project's waiting invocations. */
  queueMax: number;
  /** The client's key, and its expiry. */
  idempotency?: IdempotencyKey & { expiresAt: number };
  /** W3C trace context of the request; absent when it had none. */
  traceparent?: string | undefined;
  /** Absent when a request starts it. */
  trigger?: { scheduleId: string; scheduledFor: number };
  at: number;
};

export type InvocationOps = {
  /**
   * Stores the session, the invocation, its event, its job and its idempotency key; or returns the
   * earlier invocation of the key. Throws QUEUE_FULL, IDEMPOTENCY_MISMATCH.
   */
  acceptInvocation(invocation: NewInvocation): InvocationRow;
  getInvocation(wanted: Owned): InvocationRow | undefined;
  /**
   * Newest first, of a function that was not deleted. Without results of more than 64 KiB: a page
   * must fit a message.
   */
  listInvocations(
    wanted: PageOf<{ versionId: string; projectId: string; status: string | undefined }>,
  ): Page<InvocationRow>;
};

export type Cancelled = { invocation: InvocationRow; session: EndedSession | undefined };

export type CancelOps = {
  /**
   * Ends a PENDING invocation. Releases a RUNNING one, which then ends FAILED as cancelled unless
   * its handler returned before. Returns its new state, and the session that has ended with it;
   * undefined when there is none.
   */
  cancelInvocation(wanted: Owned & { at: number }): Cancelled | undefined;
};

/** A client's key. */
export type IdempotencyKey = {
  key: string;
  /** SHA-256 of the request. */
  requestHash: Uint8Array;
};

export type IdempotencyOps = {
  /**
   * The invocation of the key; undefined when there is none, or the key has expired. Throws
   * IDEMPOTENCY_MISMATCH for a key of another request.
   */
  findIdempotent(
    wanted: IdempotencyKey & { projectId: string; at: number },
  ): InvocationRow | undefined;
  /** Removes up to `max` expired keys; returns their number. */
  purgeIdempotencyKeys(purge: { at: number; max: number }): number;
};

/** While the last invocation waits or runs: whether another one starts. */
export type Overlap = 'skip' | 'allow';
/** Of the times that passed while core was down: none, or one run for the newest. */
export type CatchUp = 'none' | 'last';

export type SkipReason = 'overlap' | 'limit' | 'invalidParams' | 'missed' | 'refused';

/** What became of a time that was due. */
export type ScheduleOutcome = {
  status: 'started' | 'skipped';
  reason?: SkipReason;
  message?: string;
  scheduledFor: number;
};

/** What a user chooses. */
export type ScheduleRules = {
  cron: string;
  /** IANA name. */
  timeZone: string;
  /** JSON object. */
  params: string;
  overlap: Overlap;
  catchUp: CatchUp;
  enabled: boolean;
};

export type ScheduleRow = Owned &
  Dated &
  Omit<ScheduleRules, 'enabled'> & {
    functionId: string;
    enabled: 0 | 1;
    /** One more at each change by a user. */
    version: number;
    /** Null while it is disabled, or when it has no time left. */
    nextRunAt: number | null;
    /** 0: the clock was set back, and `nextRunAt` must be computed again. */
    isPlanned: 0 | 1;
    lastRunAt: number | null;
    lastInvocationId: string | null;
    /** JSON of a ScheduleOutcome. */
    lastOutcome: string | null;
  };

/** One with a time that is due. */
export type DueSchedule = ScheduleRow & { nextRunAt: number };

/** The row as core read it: nothing is written when it has changed since. */
export type SeenSchedule = Pick<DueSchedule, 'id' | 'version' | 'nextRunAt'>;

export type ScheduleOps = {
  /** Undefined when its function was deleted. */
  createSchedule(
    schedule: Owned & ScheduleRules & { functionId: string; nextRunAt: number | null; at: number },
    max: number,
  ): ScheduleRow | 'too-many' | undefined;
  getSchedule(wanted: Owned): ScheduleRow | undefined;
  /** Newest first. */
  listSchedules(wanted: PageOf<{ functionId: string; projectId: string }>): Page<ScheduleRow>;
  /**
   * Undefined when the row is of another version or gone. Without `nextRunAt` the next time stays.
   */
  updateSchedule(
    change: Owned & ScheduleRules & { version: number; nextRunAt?: number | null; at: number },
  ): ScheduleRow | undefined;
  /** False when there is none. */
  deleteSchedule(wanted: Owned): boolean;
  /**
   * Schedules with a time that is due, at most `max`. Those of several projects take turns: the
   * first of each project is before the second of any.
   */
  dueSchedules(wanted: { at: number; max: number }): DueSchedule[];
  /**
   * Accepts the invocation and sets the next time, both or neither. With `overlap: 'skip'` and an
   * open last invocation only the time is set, and the outcome says so. Throws as acceptInvocation;
   * then nothing has changed.
   */
  startScheduled(
    wanted: { seen: SeenSchedule; nextRunAt: number | null; scheduledFor: number },
    invocation: NewInvocation,
  ): 'started' | 'overlap' | 'changed';
  /** Sets the next time, and the outcome of the time that was due. */
  skipScheduled(wanted: {
    seen: SeenSchedule;
    nextRunAt: number | null;
    /** 0: at `nextRunAt` the next time is computed again, and nothing runs. 1 when absent. */
    isPlanned?: 0 | 1;
    outcome?: ScheduleOutcome;
  }): void;
};
