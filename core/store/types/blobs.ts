/** Blobs: what the database knows of the files beside it. */

import type { Within } from './storage.ts';

export type BlobKind =
  | 'BUILD_ARCHIVE'
  | 'BUNDLE'
  | 'CONTEXT'
  | 'DOWNLOAD'
  | 'EXTENSION'
  | 'RECORDING';

export type BlobRow = {
  id: string;
  projectId: string;
  kind: BlobKind;
  /** In bytes. */
  size: number;
  /** Lower-case hex. */
  sha256: string;
  createdAt: number;
};

export type BlobOps = {
  /** `full`, and nothing added, when the project would store more than is within the quota. */
  addBlob(blob: BlobRow, within?: Within): 'added' | 'full';
  getBlob(id: string): BlobRow | undefined;
  /** By id, those after that one. */
  listBlobs(wanted: { after: string; max: number }): BlobRow[];
  /** Those of the ids that have a row. */
  knownBlobs(ids: string[]): string[];
  /**
   * Removes rows older than that which no build, context, download, extension, recording or
   * open session names, `max` at most; answers their ids.
   */
  removeUnusedBlobs(wanted: { before: number; max: number }): string[];
};
