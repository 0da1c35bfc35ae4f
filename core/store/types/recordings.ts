/** Recordings of pages, as stored: a row per page, a blob per part of its video. */

export type RecordingRow = {
  /** Within the session, from 0. */
  pageId: number;
  url: string;
  /** In ms since the session's start, as the next. */
  startMs: number;
  endMs: number;
  /** Time of the request for its download. */
  requestedAt: number | null;
  /** Arrival of its last part. */
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
   * `lost`: the lease is not live, and is of no recording whose session ended later than
   * `endedAfter`. `refused`: the blob is no RECORDING of the project, or is another part's. A
   * repeated call changes nothing.
   */
  addRecording(wanted: {
    leaseId: string;
    pageId: number;
    number: number;
    /** Null for a call without a part. */
    blobId: string | null;
    startMs: number;
    endMs: number;
    url: string;
    complete: boolean;
    endedAfter: number;
    at: number;
  }): 'added' | 'lost' | 'refused';
  /** The project of a recording's lease, within the same time. */
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
   * Removes up to `max` parts, and pages without parts, of older recordings of ended sessions, with
   * their blobs' rows. Returns the blobs, whose files the caller removes, and the number of rows.
   */
  purgeRecordings(wanted: { before: number; at: number; max: number }): {
    blobIds: string[];
    rows: number;
  };
};
