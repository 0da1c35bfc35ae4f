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
  QuotaName,
  Stored,
  StoredKind,
  Within,
} from '../types/files.ts';
import type { LeaseOps } from '../types/leases.ts';
import type { NewPart, NewRecording, RecordingOps, RecordingPart } from '../types/recordings.ts';
import type { LateLease, Owned } from '../types/rows.ts';
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
  /** Undefined when its operator has set none. */
  quota(projectId: string, quota: QuotaName): Read<number | undefined>;
};

export type DownloadStatements = {
  /** The session of the lease's work. */
  sessionOf(leaseId: string): Read<LeasedSession | undefined>;
  lateSessionOf(wanted: LateLease): Read<LeasedSession | undefined>;
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

type Page = Omit<NewRecording, 'parts' | 'complete'> & LeasedSession & { at: number };
type PlacedPart = Omit<RecordingPart, 'sha256'> & { sessionId: string; pageId: number };
type Place = LeasedSession & { pageId: number };

export type RecordingStatements = {
  /** The session of the lease's work. */
  sessionOf(leaseId: string): Read<LeasedSession | undefined>;
  /** Given up, or ended with recordings under the lease. */
  lateSessionOf(wanted: LateLease): Read<LeasedSession | undefined>;
  givenUpUnder(lease: LateLease): Read<LeasedSession | undefined>;
  /** The part that has the blob. */
  ownerOf(
    blobId: string,
  ): Read<(Pick<RecordingPart, 'number'> & { sessionId: string; pageId: number }) | undefined>;
  /** Inserts or updates the page. */
  savePage(page: Page & { completedAt: number | null }): void;
  insertPart(part: PlacedPart): void;
  /** Waits for an operation that ends the session at the same time. */
  lockSession(sessionId: string): void;
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

const MIB = 1 << 20;
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
    *addDownload({ leaseId, endedAfter, at, ...download }) {
      const { blobId } = download;
      const session = yield* sessionOf(downloads, { leaseId, endedAfter });
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

type RecordingParts = Pick<FileStatements, 'blobs' | 'events' | 'storage'> & {
  recordings: RecordingStatements;
};

/**
 * Recordings arrive under the lease of their session's work. Its id stays with them, so that parts
 * that were not encoded at the session's end can arrive later. The bytes of a part arrive before:
 * its blob's row is written with the part, or was written with the bytes.
 */
export function recordingOperations(
  { recordings, blobs, events, storage }: RecordingParts,
  tx: Transaction,
): InSteps<Pick<RecordingOps, 'addRecording'> & Pick<LeaseOps, 'findLateSession'>> {
  /** Parts and blobs without a row; undefined when the session may not have one of them. */
  function* newOf(parts: readonly NewPart[], { sessionId, projectId, pageId }: Place) {
    const added: NewPart[] = [];
    const stored = new Map<string, BlobRow>();
    for (const part of parts) {
      const { blob, number } = part;
      if (blob.projectId !== projectId || blob.kind !== 'RECORDING') return undefined;
      if (stored.has(blob.id)) return undefined;
      const owner = yield* recordings.ownerOf(blob.id);
      const isSamePage = owner?.sessionId === sessionId && owner.pageId === pageId;
      if (owner && !(isSamePage && owner.number === number)) return undefined;
      if (!owner) added.push(part);
      const { id: blobId, kind } = blob;
      if (!(yield* blobs.find({ blobId, projectId, kind }))) stored.set(blobId, blob);
    }
    return { added, stored: [...stored.values()] };
  }

  /** The project's quota in MiB, when it has no room. */
  function* fullMib(projectId: string, bytes: number, quota: Within): Steps<number | undefined> {
    const own = yield* storage.quota(projectId, 'recordingMib');
    const maxBytes = own === undefined ? quota.maxBytes : own * MIB;
    if (yield* hasRoom(storage, { projectId, bytes }, { ...quota, maxBytes })) return undefined;
    return maxBytes / MIB;
  }

  return {
    *addRecording({ parts, complete, quota, endedAfter, ...wanted }) {
      const { leaseId, at } = wanted;
      const session = yield* sessionOf(recordings, { leaseId, endedAfter });
      if (!session) return 'lost';
      const page = { ...wanted, ...session };
      const { sessionId, projectId, pageId } = page;
      const found = yield* newOf(parts, page);
      if (!found) return 'refused';
      const bytes = found.stored.reduce((sum, { size }) => sum + size, 0);
      const isStart = parts.length === 0 && !complete;
      if (isStart || found.stored.length > 0) {
        const limit = yield* fullMib(projectId, Math.max(bytes, 1), quota);
        if (limit !== undefined) return { fullMib: limit };
      }
      // its end and that of its recording: one of both sees the other, and makes the event
      if (complete) recordings.lockSession(sessionId);
      for (const blob of found.stored) blobs.insert(blob);
      recordings.savePage({ ...page, completedAt: complete ? at : null });
      for (const { blob, ...part } of found.added) {
        const { id: blobId, size } = blob;
        recordings.insertPart({ ...part, sessionId, pageId, blobId, size });
      }
      tx.crashPoint('add-recording');
      if (complete && (yield* recordings.isRecorded(sessionId))) {
        yield* emitEvent(events, tx, recordingEvent({ sessionId, projectId, at }));
      }
      return 'added';
    },
    *findLateSession({ isRecording, ...lease }) {
      return yield* isRecording ? recordings.lateSessionOf(lease) : recordings.givenUpUnder(lease);
    },
  };
}

/** The session of the lease's work, also for some minutes after its end. */
function* sessionOf(
  files: Pick<DownloadStatements, 'sessionOf' | 'lateSessionOf'>,
  { leaseId, endedAfter }: LateLease,
): Steps<LeasedSession | undefined> {
  return (yield* files.sessionOf(leaseId)) ?? (yield* files.lateSessionOf({ leaseId, endedAfter }));
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
