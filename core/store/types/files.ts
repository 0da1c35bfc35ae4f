/** Files that the pages of a session have downloaded, as stored: a row and a blob each. */

export type DownloadRow = {
  id: string;
  sessionId: string;
  projectId: string;
  blobId: string;
  filename: string;
  mimeType: string;
  /** In bytes. */
  size: number;
  /** Lower-case hex. */
  sha256: string;
  createdAt: number;
};

export type DownloadFilter = {
  sessionId: string;
  projectId: string;
  filename: string | undefined;
  mimeType: string | undefined;
  /** In bytes; each bound is within. */
  minSize: number | undefined;
  maxSize: number | undefined;
  createdAfter: number | undefined;
  createdBefore: number | undefined;
};

export type DownloadOps = {
  /**
   * Adds a blob of the lease's session. `lost`: no live lease of a session. `refused`: the blob is
   * no DOWNLOAD of its project, or another's already. Repeating it changes nothing.
   */
  addDownload(wanted: {
    leaseId: string;
    id: string;
    blobId: string;
    filename: string;
    mimeType: string;
    at: number;
  }): 'added' | 'lost' | 'refused';
  /** Newest first; `total` is over all pages. */
  listDownloads(wanted: DownloadFilter & { limit: number; offset: number }): {
    rows: DownloadRow[];
    total: number;
  };
  getDownload(wanted: { id: string; projectId: string }): DownloadRow | undefined;
  /**
   * Removes one row with its blob's; gives the blob, whose file is the caller's to remove.
   * Undefined when there was none.
   */
  deleteDownload(wanted: { id: string; projectId: string }): string | undefined;
  /** Removes up to `max` of a session's, with their blobs' rows; gives the blobs. */
  deleteSessionDownloads(wanted: { sessionId: string; projectId: string; max: number }): string[];
  /** As deleteSessionDownloads, of those that are older. */
  purgeDownloads(wanted: { before: number; at: number; max: number }): string[];
};

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

/** Browser extensions that sessions load, as stored: a row and a blob each. */

export type ExtensionRow = {
  id: string;
  projectId: string;
  /** As uploaded. */
  fileName: string;
  createdAt: number;
  updatedAt: number;
};

/** What a session is to load. */
export type LeasedExtension = {
  id: string;
  blobId: string;
  /** Of the blob, lower-case hex. */
  sha256: string;
};

export type ExtensionOps = {
  /**
   * `taken`: the blob is no EXTENSION of the project, or another's already; `full`: the project has
   * `max`.
   */
  createExtension(
    wanted: { id: string; projectId: string; blobId: string; fileName: string; at: number },
    max: number,
  ): ExtensionRow | 'taken' | 'full';
  /** Undefined for one that was deleted. */
  getExtension(wanted: { id: string; projectId: string }): ExtensionRow | undefined;
  /**
   * Deletes it. One that an open session is to load stays for that session alone, and goes with
   * purgeExtensions. `dropped`: blobs whose rows are gone. Undefined when there was none.
   */
  deleteExtension(wanted: {
    id: string;
    projectId: string;
    at: number;
  }): { dropped: string[] } | undefined;
  /** Removes deleted ones that no open session is to load; gives their blobs. */
  purgeExtensions(max: number): string[];
  /** Forgets the project's blob when it is no extension; true when it did. */
  dropExtensionBlob(wanted: { blobId: string; projectId: string }): boolean;
};

export type StoredKind = BlobKind | 'ACTIVE_CONTEXT' | 'SESSION_LOG' | 'RESULT';

/** As in ProjectLimits of operators.proto. */
export type QuotaName =
  | 'contexts'
  | `${'context' | 'download' | 'recording' | 'upload' | 'log'}Mib`;

export type Stored = { kind: StoredKind; count: number; bytes: number };

/** What is to stay within a quota. */
export type Within = { kinds: readonly StoredKind[]; maxBytes: number };

export type StorageOps = {
  /** What the project stores, and the quotas that its operator has set. */
  projectStorage(projectId: string): {
    stored: Stored[];
    quotas: { quota: QuotaName; value: number }[];
  };
};
