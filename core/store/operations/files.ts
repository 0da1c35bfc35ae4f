/**
 * Stored files (blobs), their owners (downloads, extensions, recordings), and the room that a
 * project has for them. A blob has one owner, of its project and kind. Repeating an operation
 * changes nothing.
 */
import type {
  BlobKind,
  BlobOps,
  BlobRow,
  CertificateOps,
  CertificateRow,
  DownloadOps,
  DownloadRow,
  ExtensionOps,
  ExtensionRow,
  Stored,
  StoredKind,
  Within,
} from '../types/files.ts';
import type { RecordingOps, RecordingPart } from '../types/recordings.ts';
import type { Owned } from '../types/rows.ts';
import { downloadEvent, type EventStatements, emitEvent, recordingEvent } from './events.ts';
import type { InSteps, Read, Steps, Transaction } from './steps.ts';

export type LeasedSession = { sessionId: string; projectId: string };
type NewExtension = Parameters<ExtensionOps['createExtension']>[0];
type NewCertificate = Parameters<CertificateOps['createCertificate']>[0];

export type BlobStatements = {
  insert(blob: BlobRow): void;
  /** Undefined when the project has no such blob of that kind. */
  find(wanted: {
    blobId: string;
    projectId: string;
    kind: BlobKind;
  }): Read<Pick<BlobRow, 'size' | 'sha256'> | undefined>;
};

export type StorageStatements = {
  /** Undefined when it never stored that kind. */
  stored(projectId: string, kind: StoredKind): Read<Omit<Stored, 'kind'> | undefined>;
};

export type DownloadStatements = {
  /** The session of the lease's work. */
  sessionOf(leaseId: string): Read<LeasedSession | undefined>;
  /** The session of the download that has the blob. */
  ownerOf(blobId: string): Read<string | undefined>;
  insert(download: DownloadRow): void;
};

export type ExtensionStatements = {
  isOwned(blobId: string): Read<boolean>;
  countOf(projectId: string): Read<number>;
  insert(extension: NewExtension): Read<ExtensionRow>;
  /** To deleted; false when there is no such extension. */
  remove(wanted: Owned & { at: number }): Read<boolean>;
  /** Removes up to `max` deleted ones that no open session loads, with their blobs' rows. */
  purge(max: number): Read<string[]>;
  dropBlob(blobId: string): Read<boolean>;
};

export type CertificateStatements = {
  countOf(projectId: string): Read<number>;
  deletedOf(projectId: string): Read<number>;
  insert(certificate: NewCertificate): Read<CertificateRow>;
};

type Arrival = Parameters<RecordingOps['addRecording']>[0];
type NewRecording = Omit<Arrival, 'complete' | 'endedAfter'> & LeasedSession;

export type RecordingStatements = {
  /** The session of the lease's work. */
  sessionOf(leaseId: string): Read<LeasedSession | undefined>;
  /** The session of the lease's recordings, if it ended later than `endedAfter`. */
  lateSessionOf(wanted: { leaseId: string; endedAfter: number }): Read<LeasedSession | undefined>;
  /** The part that has the blob. */
  ownerOf(
    blobId: string,
  ): Read<(Pick<RecordingPart, 'number'> & { sessionId: string; pageId: number }) | undefined>;
  /** Inserts or updates the page. */
  savePage(page: NewRecording & { completedAt: number | null }): void;
  insertPart(part: NewRecording & { size: number }): void;
  /** Whether the session has ended and all its recordings are complete. */
  isRecorded(sessionId: string): Read<boolean>;
};

export type FileStatements = {
  blobs: BlobStatements;
  downloads: DownloadStatements;
  extensions: ExtensionStatements;
  certificates: CertificateStatements;
  storage: StorageStatements;
  events: EventStatements;
};

/** Removed together with an extension: it, and the backlog of a minute. */
const PURGED_AT_ONCE = 100;

export type FileWrites = Pick<BlobOps, 'addBlob'> &
  Pick<DownloadOps, 'addDownload'> &
  Omit<ExtensionOps, 'getExtension'> &
  Pick<CertificateOps, 'createCertificate'>;

export function fileOperations(
  { blobs, downloads, extensions, certificates, storage, events }: FileStatements,
  tx: Transaction,
): InSteps<FileWrites> {
  return {
    *addBlob(blob, within) {
      const wanted = { projectId: blob.projectId, bytes: blob.size };
      if (within && !(yield* hasRoom(storage, wanted, within))) return 'full';
      blobs.insert(blob);
      return 'added';
    },
    *addDownload({ leaseId, at, ...download }) {
      const { blobId } = download;
      const session = yield* downloads.sessionOf(leaseId);
      if (!session) return 'lost';
      const { sessionId, projectId } = session;
      const owner = yield* downloads.ownerOf(blobId);
      if (owner !== undefined) return owner === sessionId ? 'added' : 'refused';
      const blob = yield* blobs.find({ blobId, projectId, kind: 'DOWNLOAD' });
      if (!blob) return 'refused';
      const row = { ...download, ...session, ...blob, createdAt: at };
      downloads.insert(row);
      tx.crashPoint('add-download');
      const { blobId: _, ...shown } = row;
      yield* emitEvent(events, tx, downloadEvent(shown));
      return 'added';
    },
    *createExtension(wanted, max) {
      if (!(yield* isFree(wanted))) return 'taken';
      if ((yield* extensions.countOf(wanted.projectId)) >= max) return 'full';
      return yield* extensions.insert(wanted);
    },
    *deleteExtension(wanted) {
      if (!(yield* extensions.remove(wanted))) return undefined;
      return { dropped: yield* extensions.purge(PURGED_AT_ONCE) };
    },
    *purgeExtensions(max) {
      return yield* extensions.purge(max);
    },
    *createCertificate(wanted, max) {
      const full = yield* fullness(certificates, wanted.projectId, max);
      return full ?? (yield* certificates.insert(wanted));
    },
    *dropExtensionBlob(wanted) {
      return (yield* isFree(wanted)) && (yield* extensions.dropBlob(wanted.blobId));
    },
  };

  /** Whether the blob is an EXTENSION of the project that no extension has. */
  function* isFree(wanted: { blobId: string; projectId: string }): Steps<boolean> {
    const blob = yield* blobs.find({ ...wanted, kind: 'EXTENSION' });
    return blob !== undefined && !(yield* extensions.isOwned(wanted.blobId));
  }
}

function* fullness(
  certificates: CertificateStatements,
  projectId: string,
  max: { count: number; deleted: number },
): Steps<'full' | 'full-of-deleted' | undefined> {
  if ((yield* certificates.countOf(projectId)) >= max.count) return 'full';
  if ((yield* certificates.deletedOf(projectId)) >= max.deleted) return 'full-of-deleted';
  return undefined;
}

/**
 * Recordings arrive under the lease of their session's work. Its id stays with them, so that parts
 * that were not encoded at the session's end can arrive later.
 */
export function recordingOperations(
  {
    recordings,
    blobs,
    events,
  }: Pick<FileStatements, 'blobs' | 'events'> & {
    recordings: RecordingStatements;
  },
  tx: Transaction,
): InSteps<Pick<RecordingOps, 'addRecording' | 'findRecordingLease'>> {
  return {
    *addRecording({ complete, endedAfter, ...wanted }) {
      const { leaseId, blobId, pageId, number, at } = wanted;
      const session =
        (yield* recordings.sessionOf(leaseId)) ??
        (yield* recordings.lateSessionOf({ leaseId, endedAfter }));
      if (!session) return 'lost';
      const { sessionId, projectId } = session;
      const page = { ...wanted, ...session, completedAt: complete ? at : null };
      if (blobId === null) {
        recordings.savePage(page);
      } else {
        const blob = yield* blobs.find({ blobId, projectId, kind: 'RECORDING' });
        if (!blob) return 'refused';
        const owner = yield* recordings.ownerOf(blobId);
        const isSamePage = owner?.sessionId === sessionId && owner.pageId === pageId;
        if (owner && !(isSamePage && owner.number === number)) return 'refused';
        recordings.savePage(page);
        if (!owner) recordings.insertPart({ ...page, size: blob.size });
      }
      tx.crashPoint('add-recording');
      if (complete && (yield* recordings.isRecorded(sessionId))) {
        yield* emitEvent(events, tx, recordingEvent({ sessionId, projectId, at }));
      }
      return 'added';
    },
    *findRecordingLease(wanted) {
      return (yield* recordings.lateSessionOf(wanted))?.projectId;
    },
  };
}

/** Whether the project may store that many bytes more. */
export function* hasRoom(
  storage: StorageStatements,
  { projectId, bytes }: { projectId: string; bytes: number },
  { kinds, maxBytes }: Within,
): Steps<boolean> {
  let sum = bytes;
  for (const kind of kinds) sum += (yield* storage.stored(projectId, kind))?.bytes ?? 0;
  return sum <= maxBytes;
}
