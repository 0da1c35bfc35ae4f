/**
 * Blobs: bytes too large for a message, as streams. A project writes archives and reads its own
 * blobs; a runner writes bundles, contexts and files of its leases, and reads the blobs of its
 * work; a gateway transfers the blob of a signed URL. The row is written after the file, never
 * before; that of a part of a recording with the runner's report, which has a receipt of the file.
 */

import {
  ARCHIVE_MAX_BYTES,
  BUNDLE_MAX_BYTES,
  CONTEXT_MAX_BYTES,
  DOWNLOAD_MAX_BYTES,
  EXTENSION_MAX_BYTES,
} from '../../proto/common/limits.ts';
import type { BlobServiceService, WriteBlobRequest } from '../../proto/gen/tabern/v1/blobs.pb.ts';
import { asFault, Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { type Call, raced, throwIfOver } from '../../proto/rpc/local.ts';
import { type Caller, keyMissing, type Share } from '../api/authentication.ts';
import { LATE_MS, leaseLost, orNotFound } from '../api/checks.ts';
import type { Admit, Service } from '../api/interceptors.ts';
import { isId, newId } from '../common/ids.ts';
import type { Uploads } from '../contexts/content.ts';
import type { ContextLinks } from '../contexts/links.ts';
import type { Blobs } from '../files/blobs.ts';
import type { Disk } from '../files/disk-space.ts';
import type { Receipted, Receipts } from '../files/receipts.ts';
import type { LinkMethod } from '../files/url-signature.ts';
import type { Arrival, Quotas } from '../projects/quotas.ts';
import type { RecordingBytes } from '../sessions/recordings/content.ts';
import { isRecordingUrl } from '../sessions/recordings/links.ts';
import type { ContextContent } from '../store/types/contexts.ts';
import type { BlobKind } from '../store/types/files.ts';
import type { WorkKind } from '../store/types/leases.ts';
import type { Store } from '../store/types.ts';

/** In bytes. Sources: proto/spec/functions.md 2, proto/spec/sessions.md 9, blobs.proto. */
export const MAX_BYTES: Record<BlobKind, number> = {
  BUILD_ARCHIVE: ARCHIVE_MAX_BYTES,
  BUNDLE: BUNDLE_MAX_BYTES,
  CONTEXT: CONTEXT_MAX_BYTES,
  DOWNLOAD: DOWNLOAD_MAX_BYTES,
  EXTENSION: EXTENSION_MAX_BYTES,
  RECORDING: 64 << 20,
};
/** Kinds of work, and the blobs that each may write. */
const MAKERS: Partial<Record<BlobKind, readonly WorkKind[]>> = {
  BUNDLE: ['build'],
  CONTEXT: ['invocation', 'session'],
  DOWNLOAD: ['invocation', 'session'],
  RECORDING: ['invocation', 'session'],
};

type BlobOwner = Exclude<Caller, Share>;
export type BlobCaller = { who: BlobOwner; call: Call };

export const everybody: Admit<BlobCaller> = (who, call) => {
  if (who.kind === 'share') throw keyMissing(); // the link of a session opens no file
  return { who, call };
};

export type BlobOptions = {
  store: Store;
  files: Blobs;
  links: Pick<ContextLinks, 'read'>;
  uploads: Pick<Uploads, 'begin'>;
  quotas: Pick<Quotas, 'arrive'>;
  recording: RecordingBytes;
  receipts: Receipts;
  disk: Pick<Disk, 'checkRoom'>;
  now: () => number;
};

type Streams = Pick<typeof BlobServiceService, 'writeBlob' | 'readBlob'>;

export function blobService(options: BlobOptions): Service<Streams, BlobCaller> {
  const { store, files, uploads, quotas, now } = options;

  return {
    async writeBlob(requests, { who, call }) {
      const parts = requests[Symbol.asyncIterator]();
      const { value: first } = await parts.next();
      const header = first?.part?.$case === 'header' ? first.part.value : undefined;
      if (!header) throw invalidField('header', 'must come first.');
      const { kind, projectId, contextId } = await ownerOf(options, header, who);
      // running work may store its results
      if (who.kind !== 'runner') options.disk.checkRoom();
      // a session's save is not refused, because it would be lost
      using _ = who.kind === 'gateway' ? uploads.begin(projectId) : undefined;
      const replaced = await replacedBytes(store, { projectId, contextId });
      using arrival = await quotas.arrive(projectId, kind, replaced);
      const id = newId();
      const written = await files.write(id, chunks(parts, call, arrival), MAX_BYTES[kind]);
      if (call.signal.aborted) {
        // HTTP/2 delivers the data of a cancelled stream before the cancellation.
        await files.remove(id);
        throw call.signal.reason;
      }
      const blob = { id, projectId, kind, ...written };
      const receipt = receiptOf(options, header, blob);
      if (receipt !== undefined) return { blobId: id, ...written, receipt };
      try {
        await arrival.store({ ...blob, createdAt: now() });
      } catch (error) {
        // The row may exist when the outcome is unknown: its file stays.
        if (asFault(error).reason === 'QUOTA_EXCEEDED') await files.remove(id);
        throw error;
      }
      return { blobId: id, ...written, receipt: undefined };
    },

    async *readBlob({ blobId, url, offset, length }, { who }) {
      if (who.kind === 'gateway' && url !== undefined && isRecordingUrl(url)) {
        yield* options.recording({ url, offset, length });
        return;
      }
      const id = who.kind === 'gateway' ? await linkedBlob(options, url) : blobId;
      const row = isId(id) ? await store.getBlob(id) : undefined;
      if (!row || (who.kind === 'project' && row.projectId !== who.projectId)) {
        throw notFound('Blob', id);
      }
      for await (const chunk of files.read(row)) yield { chunk, size: undefined };
    },
  };
}

/** `contextId`: the context whose content it replaces. */
export type Owner = { kind: BlobKind; projectId: string; contextId?: string | undefined };

export type Header = Extract<NonNullable<WriteBlobRequest['part']>, { $case: 'header' }>['value'];

/**
 * The owner of the blob: the project of the key, of the runner's work, or of the context in the
 * signed URL.
 */
export async function ownerOf(
  options: BlobOptions,
  { kind, leaseId = '', url, reported: isReported = false }: Header,
  who: BlobOwner,
): Promise<Owner> {
  const { store } = options;
  if (isReported && kind !== 'RECORDING') {
    throw invalidField('reported', 'must be absent for other kinds than RECORDING.');
  }
  switch (who.kind) {
    case 'project':
      if (kind !== 'BUILD_ARCHIVE' && kind !== 'EXTENSION') {
        throw invalidField('kind', 'must be BUILD_ARCHIVE or EXTENSION.');
      }
      return { kind, projectId: who.projectId };
    case 'operator':
      throw keyMissing();
    case 'gateway': {
      if (kind !== 'CONTEXT') throw invalidField('kind', 'must be CONTEXT.');
      const { projectId, id: contextId } = await linkedContext(options, 'PUT', url);
      return { kind, projectId, contextId };
    }
    case 'runner': {
      const makers = kind === 'KIND_UNSPECIFIED' ? undefined : MAKERS[kind];
      if (kind === 'KIND_UNSPECIFIED' || makers === undefined) {
        throw invalidField('kind', `must be one of ${Object.keys(MAKERS).join(', ')}.`);
      }
      const lease =
        (await store.findLease(leaseId)) ?? (await lateLease(options, { kind, leaseId }));
      if (!lease || !makers.includes(lease.kind)) throw leaseLost(leaseId);
      const contextId = kind === 'CONTEXT' ? await savedContext(options, lease) : undefined;
      return { kind, projectId: lease.projectId, contextId };
    }
  }
}

/** Of a session that core gave up, or whose recording is still sent. */
async function lateLease(
  { store, now }: Pick<BlobOptions, 'store' | 'now'>,
  { kind, leaseId }: Pick<Header, 'kind'> & { leaseId: string },
) {
  const isRecording = kind === 'RECORDING';
  const late = await store.findLateSession({ leaseId, endedAfter: now() - LATE_MS, isRecording });
  return late && { kind: 'session' as const, id: late.sessionId, projectId: late.projectId };
}

/** Undefined for a blob whose row is written at once. */
export function receiptOf(
  { receipts }: Pick<BlobOptions, 'receipts'>,
  { reported: isReported = false, leaseId = '' }: Pick<Header, 'reported' | 'leaseId'>,
  blob: Omit<Receipted, 'leaseId'>,
): string | undefined {
  return isReported ? receipts.make({ ...blob, leaseId }) : undefined;
}

/** The context that the session of that lease saves. */
async function savedContext(
  { store }: Pick<BlobOptions, 'store'>,
  { kind, id, projectId }: { kind: string; id: string; projectId: string },
): Promise<string | undefined> {
  const invocation = kind === 'invocation' ? await store.getInvocation({ id, projectId }) : null;
  const session = await store.getSession({ id: invocation?.sessionId ?? id, projectId });
  return session?.contextId ?? undefined;
}

/** The old content of a context is removed when the new one is committed. */
export async function replacedBytes(
  store: Store,
  { projectId, contextId }: Pick<Owner, 'projectId' | 'contextId'>,
): Promise<number> {
  if (contextId === undefined) return 0;
  const content = await store.getContextContent({ id: contextId, projectId });
  return content?.blobId ? ((await store.getBlob(content.blobId))?.size ?? 0) : 0;
}

/** The context of the signed URL. A deleted one is not found. */
async function linkedContext(
  { store, links }: BlobOptions,
  method: LinkMethod,
  url: string | undefined,
): Promise<ContextContent & { id: string; projectId: string }> {
  if (url === undefined) {
    throw new Fault('TOKEN_REQUIRED', 'This operation needs an API key or the runner token.');
  }
  const named = await links.read(method, url);
  const content = orNotFound(await store.getContextContent(named), 'Context', named.id);
  return { ...content, ...named };
}

async function linkedBlob(options: BlobOptions, url: string | undefined): Promise<string> {
  const { id, blobId } = await linkedContext(options, 'GET', url);
  if (blobId === null) throw notFound('Context content', id);
  return blobId;
}

/**
 * The bytes after the header. A stream that its writer aborted must neither look complete nor hang.
 */
async function* chunks(parts: AsyncIterator<WriteBlobRequest>, call: Call, arrival: Arrival) {
  for (;;) {
    throwIfOver(call);
    // grpc-js neither ends nor destroys the stream of a cancelled call: waiting for it alone would
    // hang.
    const { value, done } = await raced(parts.next(), call);
    throwIfOver(call);
    if (done) return;
    if (value.part?.$case !== 'chunk') throw invalidField('chunk', 'must follow the header.');
    const bytes = value.part.value;
    arrival.add(bytes.byteLength);
    yield bytes;
  }
}
