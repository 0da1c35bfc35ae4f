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
  purgeDownloads(wanted: { before: number; max: number }): string[];
};
