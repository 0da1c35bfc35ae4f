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
