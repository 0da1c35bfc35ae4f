/**
 * Blobs: bytes too large for a message, as streams. A project writes the archives it publishes and
 * reads its own; a runner writes the bundle that its lease makes and reads what its work needs. The
 * row comes after the file, never before.
 */
import { Fault, invalidField, notFound } from '../proto/errors.ts';
import type { BlobServiceService, WriteBlobRequest } from '../proto/gen/tabern/v1/blobs.pb.ts';
import type { Call } from '../proto/rpc.ts';
import type { Caller } from './auth.ts';
import type { BlobFiles } from './blobs/files.ts';
import type { Admit, Service } from './call.ts';
import { isId, newId } from './ids.ts';
import type { BlobKind } from './store/types/blobs.ts';
import type { Store } from './store/types.ts';

/** In bytes. Sources: reference.md 2.4 (25 MB), blobs.proto. */
const MAX_BYTES: Record<BlobKind, number> = {
  BUILD_ARCHIVE: 25 << 20,
  BUNDLE: 32 << 20,
};

export type BlobCaller = { who: Exclude<Caller, { kind: 'gateway' }>; call: Call };

export const projectsAndRunners: Admit<BlobCaller> = (who, call) => {
  if (who.kind === 'gateway') {
    throw new Fault('TOKEN_REQUIRED', 'This operation needs an API key or the runner token.');
  }
  return { who, call };
};

export function blobService(options: {
  store: Store;
  files: BlobFiles;
  now: () => number;
}): Service<typeof BlobServiceService, BlobCaller> {
  const { store, files, now } = options;

  return {
    async writeBlob(requests, { who, call }) {
      const parts = requests[Symbol.asyncIterator]();
      const { value: first } = await parts.next();
      const header = first?.part?.$case === 'header' ? first.part.value : undefined;
      if (!header) throw invalidField('header', 'must come first.');
      const { kind, projectId } = await ownerOf(store, header, who);
      const id = newId();
      const written = await files.write(id, chunks(parts, call), MAX_BYTES[kind]);
      if (call.signal.aborted) {
        // HTTP/2 closes a cancelled stream's data in order before it says that it was cancelled.
        await files.remove(id);
        throw call.signal.reason;
      }
      await store.addBlob({ id, projectId, kind, ...written, createdAt: now() });
      return { blobId: id, ...written };
    },

    async *readBlob({ blobId }, { who }) {
      const row = isId(blobId) ? await store.getBlob(blobId) : undefined;
      if (!row || (who.kind === 'project' && row.projectId !== who.projectId)) {
        throw notFound('Blob', blobId);
      }
      for await (const chunk of files.read(row.id)) yield { chunk };
    },
  };
}

/** Whose blob it becomes: the key's project, or the project of the build that the runner holds. */
async function ownerOf(
  store: Store,
  { kind, leaseId }: { kind: BlobKind | 'KIND_UNSPECIFIED'; leaseId?: string | undefined },
  who: BlobCaller['who'],
): Promise<{ kind: BlobKind; projectId: string }> {
  if (who.kind === 'project') {
    if (kind !== 'BUILD_ARCHIVE') throw invalidField('kind', 'must be BUILD_ARCHIVE.');
    return { kind, projectId: who.projectId };
  }
  if (kind !== 'BUNDLE') throw invalidField('kind', 'must be BUNDLE.');
  const lease = leaseId === undefined ? undefined : await store.findLease(leaseId);
  if (lease?.kind !== 'build') throw new Fault('LEASE_LOST', 'The lease is lost or has ended.');
  return { kind, projectId: lease.projectId };
}

/**
 * The bytes after the header. A stream that its writer cut short must not look like one that ended,
 * nor hang.
 */
async function* chunks(parts: AsyncIterator<WriteBlobRequest>, { signal }: Call) {
  const { promise: left, reject } = Promise.withResolvers<never>();
  const leave = () => reject(signal.reason);
  left.catch(() => {}); // the call may end before anybody waits
  signal.addEventListener('abort', leave, { once: true });
  try {
    for (;;) {
      if (signal.aborted) throw signal.reason;
      // grpc-js neither ends nor breaks the stream of a cancelled call: waiting for it alone would
      // never end.
      const { value, done } = await Promise.race([parts.next(), left]);
      if (signal.aborted) throw signal.reason;
      if (done) return;
      if (value.part?.$case !== 'chunk') throw invalidField('chunk', 'must follow the header.');
      yield value.part.value;
    }
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
