/** Recordings of pages, as stored: a row per page, a blob per part of its video. */

export type RecordingRow = {
  /** Within the session, from 0. */
  pageId: number;
  url: string;
  /** In ms since the session's start, as the next. */
  startMs: number;
  endMs: number;
  /** When its download was asked for. */
  requestedAt: number | null;
  /** When the last of it came. */
  completedAt: number | null;
  /** Parts with a duration. */
  segments: number;
};

export type RecordingPart = {
  /** 0 is the video's start. */
  number: number;
  blobId: string;
  /** In bytes. */
  size: number;
  /** Lower-case hex. */
  sha256: string;
  /** In ms since the session's start. */
  startMs: number;
  endMs: number;
};

export type RecordingOps = {
  /**
   * `lost`: no live lease of a session, nor one that a recording began under whose session ended
   * later than `endedAfter`. `refused`: the blob is no RECORDING of its project, or another
   * part's. Repeating it changes nothing.
   */
  addRecording(wanted: {
    leaseId: string;
    pageId: number;
    number: number;
    /** Null when it brings no part. */
    blobId: string | null;
    startMs: number;
    endMs: number;
    url: string;
    complete: boolean;
    endedAfter: number;
    at: number;
  }): 'added' | 'lost' | 'refused';
  /** The project of a lease that a recording began under, within the same time. */
  findRecordingLease(wanted: { leaseId: string; endedAfter: number }): string | undefined;
  /** By page. */
  listRecordings(sessionId: string): RecordingRow[];
  /** By number. */
  listRecordingParts(wanted: {
    sessionId: string;
    projectId: string;
    pageId: number;
  }): RecordingPart[];
  /** Of those pages. */
  requestRecordings(wanted: { sessionId: string; pageIds: number[]; at: number }): void;
  /**
   * Removes up to `max` parts, and pages without parts, of ended sessions' recordings that are
   * older, with their blobs' rows; gives the blobs, whose files are the caller's to remove, and how
   * many rows went.
   */
  purgeRecordings(wanted: { before: number; at: number; max: number }): {
    blobIds: string[];
    rows: number;
  };
};
