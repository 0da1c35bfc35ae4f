/**
 * The port of stored bytes. Two engines: files in the data directory (blob-files.ts), which is the
 * default, and objects of a bucket (s3/objects.ts). test/core/files/blobs.test.ts has the
 * guarantees of both.
 */
import type { Stored } from './checked-bytes.ts';

export type Written = { size: number; sha256: string };

/** Bytes in storage, with or without a row. */
export type ListedBlob = {
  name: string;
  /** In ms since it was written. `wall`: the machine's clock, which set the times of files. */
  ageMs(wall: number): number | Promise<number>;
};

export type Blobs = {
  /**
   * Stores the bytes under the id: complete and durable when it resolves. Throws BODY_TOO_LARGE
   * beyond `maxBytes`; whatever it throws, nothing is stored.
   */
  write(id: string, parts: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Written>;
  /** Verified: throws DATA_CORRUPT instead of the last bytes of a damaged or lost blob. */
  read(blob: Stored): AsyncGenerator<Buffer>;
  /** Bytes from `start` to `end` (exclusive, greater than start). */
  readRange(blob: Stored, start: number, end: number): AsyncGenerator<Buffer>;
  /** The first bytes, not verified. Throws DATA_CORRUPT when there is no such blob. */
  head(id: string, maxBytes: number, signal?: AbortSignal): Promise<Buffer>;
  /**
   * The path of a file with the bytes, until disposed, for readers that seek. A copy is verified
   * as `read` does; the file of a data directory is what was written.
   */
  local(blob: Stored, signal: AbortSignal): Promise<{ path: string } & AsyncDisposable>;
  exists(id: string): Promise<boolean>;
  /** Removing missing blobs is no error. What cannot be removed now is found by the next sweep. */
  remove(...ids: string[]): Promise<void>;
  /** Until disposed, nothing is removed; removals are delayed. */
  hold(): AsyncDisposable;
  /** All that is stored, in batches. */
  list(): AsyncGenerator<ListedBlob[]>;
  /** Aborts uploads that nobody completes any more. */
  sweepUploads(): Promise<number>;
  /** In milliseconds, between two lists of everything: a bucket costs for each. */
  listPeriodMs: number;
  /** Absent: all bytes go through core. */
  direct?: DirectUploads;
};

/** Uploads whose bytes do not go through core. The caller checks rights, quotas and limits. */
export type DirectUploads = {
  /** The id of a multipart upload. */
  begin(id: string): Promise<string>;
  /** A request for whoever has these bytes; without an upload they are the whole blob. */
  sign(target: UploadPart, bytes: Written): Promise<SignedRequest>;
  /** The size of the stored blob. Throws when parts are missing. Repeatable. */
  complete(target: Upload, tags: readonly string[]): Promise<number>;
  abort(target: Upload): Promise<void>;
};

export type Upload = {
  id: string;
  /** Absent: one request uploads the whole blob. */
  uploadId?: string | undefined;
};
/** `number`: from 1. */
export type UploadPart = Upload & { number: number };
export type SignedRequest = { method: string; url: string; headers: Record<string, string> };
