/** Files that the pages of a session have downloaded, as stored: a row and a blob each. */
import type { Page, PageOf } from './functions.ts';
import type { Dated, LateLease, Owned } from './rows.ts';

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
  /** In bytes, inclusive. */
  minSize: number | undefined;
  maxSize: number | undefined;
  createdAfter: number | undefined;
  createdBefore: number | undefined;
};

export type DownloadOps = {
  /**
   * Adds a blob of the lease's session. `lost`: the lease is not live, and not of a session that
   * core gave up later than `endedAfter`. `refused`: the blob is no DOWNLOAD of the project, or has
   * another owner. A repeated call changes nothing.
   */
  addDownload(
    wanted: LateLease & {
      id: string;
      blobId: string;
      filename: string;
      mimeType: string;
      at: number;
    },
  ): 'added' | 'lost' | 'refused';
  /** Newest first. */
  listDownloads(wanted: PageOf<DownloadFilter>): Page<DownloadRow>;
  getDownload(wanted: Owned): DownloadRow | undefined;
  /**
   * Removes one row with its blob's row; returns the blob, whose file the caller removes. Undefined
   * when there was none.
   */
  deleteDownload(wanted: Owned): string | undefined;
  /** Removes up to `max` of a session's, with their blobs' rows; returns the blobs. */
  deleteSessionDownloads(wanted: { sessionId: string; projectId: string; max: number }): string[];
  /** As deleteSessionDownloads, for older ones. */
  purgeDownloads(wanted: { before: number; at: number; max: number }): string[];
};

export type BlobKind =
  | 'BUILD_ARCHIVE'
  | 'BUNDLE'
  | 'CONTEXT'
  | 'DOWNLOAD'
  | 'EXTENSION'
  | 'RECORDING';

export type BlobRow = Owned & {
  kind: BlobKind;
  /** In bytes. */
  size: number;
  /** Lower-case hex. */
  sha256: string;
  createdAt: number;
};

export type BlobOps = {
  /** `full`, and nothing added, when the project would exceed its quota. */
  addBlob(blob: BlobRow, within?: Within): 'added' | 'full';
  getBlob(id: string): BlobRow | undefined;
  /** In order of id, from behind `after`. */
  listBlobs(wanted: { after: string; max: number }): BlobRow[];
  /** The ids that have a row. */
  knownBlobs(ids: string[]): string[];
  /**
   * Removes up to `max` older rows that no build, context, download, extension, recording or open
   * session refers to; returns their ids.
   */
  removeUnusedBlobs(wanted: { before: number; max: number }): string[];
};

/** Browser extensions that sessions load, as stored: a row and a blob each. */

export type ExtensionRow = Owned &
  Dated & {
    /** As uploaded. */
    fileName: string;
  };

/** The extension that a session loads. */
export type LeasedExtension = {
  id: string;
  blobId: string;
  /** Of the blob, lower-case hex. */
  sha256: string;
};

export type ExtensionOps = {
  /**
   * `taken`: the blob is no EXTENSION of the project, or has another owner; `full`: the project has
   * `max`.
   */
  createExtension(
    wanted: Owned & { blobId: string; fileName: string; at: number },
    max: number,
  ): ExtensionRow | 'taken' | 'full';
  /** Undefined when it was deleted. */
  getExtension(wanted: Owned): ExtensionRow | undefined;
  /**
   * Deletes it. While an open session loads it, its row stays for that session until
   * purgeExtensions. `dropped`: blobs without rows. Undefined when there was none.
   */
  deleteExtension(wanted: Owned & { at: number }): { dropped: string[] } | undefined;
  /** Removes deleted ones that no open session loads; returns their blobs. */
  purgeExtensions(max: number): string[];
  /** Removes the row of a blob that no extension has; false when there is none. */
  dropExtensionBlob(wanted: { blobId: string; projectId: string }): boolean;
};

export type CertificateRow = Owned & Dated;

/** One or several certificates in PEM, uploaded together. */
export type CertificateOps = {
  /** `full`: the project has `count`; `full-of-deleted`: so many deleted ones are stored. */
  createCertificate(
    wanted: Owned & { pem: string; at: number },
    max: { count: number; deleted: number },
  ): CertificateRow | 'full' | 'full-of-deleted';
  /** Undefined when it was deleted. `size`: of its PEM. */
  getCertificate(wanted: Owned): (CertificateRow & { size: number }) | undefined;
  /** Newest first. */
  listCertificates(wanted: { projectId: string; max: number }): CertificateRow[];
  /**
   * Deletes it. While an open session trusts it, its row stays until purgeCertificates. False when
   * there was none.
   */
  deleteCertificate(wanted: Owned & { at: number }): boolean;
  /** Removes up to `max` deleted ones that no open session trusts; returns their number. */
  purgeCertificates(max: number): number;
};

export type StoredKind = BlobKind | 'ACTIVE_CONTEXT' | 'SESSION_LOG' | 'RESULT';

/** As in ProjectLimits of operators.proto. */
export type QuotaName =
  | 'contexts'
  | `${'context' | 'download' | 'recording' | 'upload' | 'log'}Mib`;

export type Stored = { kind: StoredKind; count: number; bytes: number };

/** A quota, and the kinds that count. */
export type Within = { kinds: readonly StoredKind[]; maxBytes: number };

export type StorageOps = {
  /** The project's stored sums, and the quotas that its operator has set. */
  projectStorage(projectId: string): {
    stored: Stored[];
    quotas: { quota: QuotaName; value: number }[];
  };
};
