/**
 * Content of contexts: opened for a session that loads it, replaced by a session's save or by an
 * upload. The private key that unwraps the content's keys never leaves core. The old content stays
 * until the new one is committed; its file is removed after that.
 */
import { createPrivateKey } from 'node:crypto';
import { PROFILE_HEAD_BYTES, unwrapKeys } from '../../proto/archives/context-format.ts';
import { verifyProfile } from '../../proto/archives/context-reader.ts';
import { CONTEXT_TRANSFER_TIMEOUT_MS } from '../../proto/common/limits.ts';
import type { ContextServiceService } from '../../proto/gen/tabern/v1/contexts.pb.ts';
import type {
  ContextWork,
  SaveContextRequest,
  SaveContextResponse,
} from '../../proto/gen/tabern/v1/runners.pb.ts';
import { asFault, Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { openSemaphore } from '../../proto/sharing/semaphore.ts';
import { LATE_MS, leaseLost, orNotFound } from '../api/checks.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import type { Sealer } from '../common/sealer.ts';
import type { Blobs } from '../files/blobs.ts';
import type { Stored } from '../files/checked-bytes.ts';
import type { ContextContent, LeasedContext } from '../store/types/contexts.ts';
import type { Store } from '../store/types.ts';
import { privateKeyData } from './key-pool.ts';
import type { ContextLinks } from './links.ts';

/**
 * Concurrent verifications of uploads: each upload is read twice and unpacked. One per project.
 * Ours.
 */
const CHECKS = { max: 2, ofOwner: 1 };

export type ContentOptions = {
  store: Store;
  files: Blobs;
  sealer: Sealer;
  now: () => number;
};

/** The context of a work item, with the keys of its content. */
export async function contextWork(
  options: ContentOptions,
  { persist, ...content }: LeasedContext,
  signal: AbortSignal,
): Promise<ContextWork> {
  const { id: contextId, blobId, publicKey } = content;
  const keys = blobId === null ? Buffer.alloc(0) : await keysOf(options, blobId, content, signal);
  return { contextId, persist, blobId: blobId ?? undefined, keys, publicKey };
}

/** Stores a session's save. Throws LEASE_LOST, or INVALID_FIELD for a blob that it may not save. */
export async function saveContext(
  { store, files, now }: ContentOptions,
  { leaseId, blobId }: SaveContextRequest,
): Promise<SaveContextResponse> {
  const at = now();
  const saved = await store.saveContext({ leaseId, endedAfter: at - LATE_MS, blobId, at });
  if (saved.outcome === 'lost') throw leaseLost(leaseId);
  if (saved.outcome === 'refused') {
    throw invalidField('blobId', 'must be a context written under a lease that persists one.');
  }
  await files.remove(...saved.dropped);
  return {
    saved: saved.outcome === 'saved',
    replaced: saved.outcome === 'older' || (saved.outcome === 'saved' && saved.replaced),
  };
}

export function contentService(
  options: ContentOptions & {
    links: Pick<ContextLinks, 'read'>;
    uploads: Pick<Uploads, 'prove'>;
  },
): Service<Pick<typeof ContextServiceService, 'replaceContext'>, MachineCaller> {
  const { store, files, links, uploads, now } = options;
  const semaphore = openSemaphore(CHECKS);

  async function replace(url: string, blob: Stored, { call }: MachineCaller): Promise<string[]> {
    // The URL was valid when the upload began: WriteBlob has checked it.
    const named = await links.read('PUT', url, CONTEXT_TRANSFER_TIMEOUT_MS);
    const content = orNotFound(await store.getContextContent(named), 'Context', named.id);
    using _ = await semaphore.acquire(call.signal, named.projectId);
    await checkUpload(options, blob, { content, signal: call.signal });
    const replaced = await store.replaceContext({ ...named, blobId: blob.id, at: now() });
    if (replaced.outcome === 'refused') throw invalidField('blobId', 'must be a new context.');
    if (replaced.outcome === 'deleted') throw notFound('Context', named.id);
    return replaced.dropped;
  }

  return {
    async replaceContext({ url, blobId }, caller) {
      const blob = await store.getBlob(blobId);
      if (blob?.kind !== 'CONTEXT') throw notFound('Blob', blobId);
      using _ = uploads.prove(blob.projectId);
      try {
        await files.remove(...(await replace(url, blob, caller)));
        return {};
      } catch (error) {
        // Existing content stays after a failure; the failed upload is removed.
        await files.remove(...(await store.dropContextBlobs([blobId])));
        throw asFault(error);
      }
    },
  };
}

/** Throws ARCHIVE_INVALID, with equal text and timing for every decryption failure. */
async function checkUpload(
  options: ContentOptions,
  blob: Stored,
  { content, signal }: { content: ContextContent; signal: AbortSignal },
): Promise<void> {
  const keys = await keysOf(options, blob.id, content, signal);
  try {
    await using file = await options.files.local(blob, signal);
    await verifyProfile(file.path, keys, { signal });
  } finally {
    keys.fill(0);
  }
}

/** Keys that the blob's head wraps for the context; random ones when there are none. */
async function keysOf(
  { files, sealer }: ContentOptions,
  blobId: string,
  { keyPairId, privateKey }: Pick<ContextContent, 'keyPairId' | 'privateKey'>,
  signal: AbortSignal,
): Promise<Buffer> {
  const head = await files.head(blobId, PROFILE_HEAD_BYTES, signal);
  const der = sealer.open(privateKey, privateKeyData(keyPairId));
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  return unwrapKeys(head, key.export({ format: 'pem', type: 'pkcs8' }).toString());
}

export type Uploads = ReturnType<typeof openUploads>;

export function openUploads() {
  const uploads = new Set<{ projectId: string }>();
  /** For an upload that was received: never refused. */
  const prove = (projectId: string): Disposable => {
    const upload = { projectId };
    uploads.add(upload);
    return { [Symbol.dispose]: () => void uploads.delete(upload) };
  };
  /** Dispose when the upload was received. Throws CONCURRENCY_LIMIT during another upload. */
  const begin = (projectId: string): Disposable => {
    if (![...uploads].some((one) => one.projectId === projectId)) return prove(projectId);
    const message = 'Max concurrent uploads to contexts (1) reached.';
    throw new Fault('CONCURRENCY_LIMIT', message, { limit: 1, current: 1 });
  };
  return { begin, prove };
}
