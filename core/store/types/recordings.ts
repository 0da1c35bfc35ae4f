/** Recordings of pages, as stored: a row per page, a blob per part of its video. */
import type { BlobRow, Within } from './files.ts';

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

/** A part of a video, whose bytes are in storage. */
export type NewPart = Pick<RecordingPart, 'number' | 'startMs' | 'endMs'> & { blob: BlobRow };

/** What is new of a page's recording. */
export type NewRecording = {
  leaseId: string;
  pageId: number;
  /** In ms since the session's start. */
  startMs: number;
  endMs: number;
  url: string;
  parts: NewPart[];
  /** No part follows. */
  complete: boolean;
};

export type RecordingLimits = {
  /** Of projects without a quota of their own. */
  quota: Within;
  /** The lease of an older session is lost. */
  endedAfter: number;
};

export type RecordingOps = {
  /**
   * Adds all parts, and the rows of blobs that have none, or nothing. `lost`: the lease is not
   * live, and is of no recording whose session ended later than `endedAfter`. `refused`: a blob is
   * no RECORDING of the project, or is another part's. `fullMib`: the project's quota, which has no
   * room for the new blobs, or for a page that starts. A repeated call changes nothing.
   */
  addRecording(wanted: NewRecording & RecordingLimits & { at: number }): RecordingAnswer;
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

export type RecordingAnswer = 'added' | 'lost' | 'refused' | { fullMib: number };
