/** Blobs: what the database knows of the files beside it. */

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
  addBlob(blob: BlobRow): void;
  getBlob(id: string): BlobRow | undefined;
  /** Those of the ids that have a row. */
  knownBlobs(ids: string[]): string[];
  /**
   * Removes rows older than that which no build, context, download, extension, recording or
   * open session names, `max` at most; answers their ids.
   */
  removeUnusedBlobs(wanted: { before: number; max: number }): string[];
};
