/**
 * Extensions: browser extensions that sessions load, one zip each. active -> deleted, once; open
 * sessions with a deleted one still load it. An invalid extension is refused at creation, with the
 * reason, so that no session fails because of it.
 */

import { checkExtension, ExtensionError } from '../../proto/archives/extension-zip.ts';
import type {
  Extension,
  ExtensionServiceService,
} from '../../proto/gen/tabern/v1/extensions.pb.ts';
import type { ExtensionWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { openSemaphore } from '../../proto/sharing/semaphore.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { isId, newId } from '../common/ids.ts';
import type { ExtensionRow, LeasedExtension } from '../store/types/files.ts';
import type { Store } from '../store/types.ts';
import type { BlobFiles } from './blob-files.ts';

/** In characters. Source: extensions.proto. */
const NAME_MAX = 255;
/** Concurrent verifications: each zip is unpacked. One per project. Ours. */
const CHECKS = { max: 2, ofOwner: 1 };

type Options = {
  store: Store;
  files: Pick<BlobFiles, 'path' | 'remove'>;
  now: () => number;
  /** Limit per project. */
  extensionsMax: number;
};

export function extensionService({
  store,
  files,
  now,
  extensionsMax,
}: Options): Service<typeof ExtensionServiceService, ProjectCaller> {
  const semaphore = openSemaphore(CHECKS);

  /** Throws INVALID_FIELD with the defect of the zip. */
  async function check(
    blobId: string,
    { projectId, call: { signal } }: ProjectCaller,
  ): Promise<void> {
    using _ = await semaphore.acquire(signal, projectId);
    try {
      await checkExtension(files.path(blobId), { signal });
    } catch (error) {
      if (!(error instanceof ExtensionError)) throw error;
      throw invalidField('file', `is no extension: ${error.message}.`);
    }
  }

  return {
    async createExtension({ fileName: said, blobId }, caller) {
      const { projectId } = caller;
      const blob = isId(blobId) ? await store.getBlob(blobId) : undefined;
      if (blob?.projectId !== projectId || blob.kind !== 'EXTENSION') {
        throw notFound('Blob', blobId);
      }
      try {
        const fileName = checkedName(said);
        await check(blobId, caller);
        const wanted = { id: newId(), projectId, blobId, fileName, at: now() };
        const made = await store.createExtension(wanted, extensionsMax);
        if (made === 'taken') throw invalidField('blobId', 'is an extension already.');
        if (made === 'full') throw tooMany(extensionsMax);
        return { extension: toProto(made) };
      } catch (error) {
        // A failed upload is removed; an existing extension stays.
        if (await store.dropExtensionBlob({ blobId, projectId })) await files.remove(blobId);
        throw error;
      }
    },

    async getExtension({ id }, { projectId }) {
      return { extension: toProto(await findExtension(store, { id, projectId })) };
    },

    async deleteExtension({ id: said }, { projectId }) {
      const own = { id: said.toLowerCase(), projectId, at: now() };
      const deleted = isId(said) ? await store.deleteExtension(own) : undefined;
      if (!deleted) throw notFound('Extension', said);
      await Promise.all(deleted.dropped.map((blobId) => files.remove(blobId)));
      return {};
    },
  };
}

/**
 * An extension of the project. Throws RESOURCE_NOT_FOUND: an extension id is a plain string in the
 * interface, so text that is not a UUID is unknown, not malformed.
 */
export async function findExtension(
  store: Pick<Store, 'getExtension'>,
  { id, projectId }: { id: string; projectId: string },
): Promise<ExtensionRow> {
  const own = { id: id.toLowerCase(), projectId };
  const row = isId(id) ? await store.getExtension(own) : undefined;
  if (!row) throw notFound('Extension', id);
  return row;
}

/**
 * The extension in a session's params, in lower case like stored ids; the interface has two fields
 * for it, and the one outside of browserSettings takes precedence.
 */
export function extensionOf(params: {
  extensionId?: unknown;
  browserSettings?: unknown;
}): string | null {
  const { extensionId } = (params.browserSettings ?? {}) as { extensionId?: unknown };
  const id = params.extensionId ?? extensionId;
  return typeof id === 'string' ? id.toLowerCase() : null;
}

/** In the format for runners. */
export function extensionWork({ id, blobId, sha256 }: LeasedExtension): ExtensionWork {
  return { extensionId: id, blobId, sha256 };
}

function tooMany(limit: number): Fault {
  const message = `A project has at most ${limit} extensions. Delete one first.`;
  return new Fault('TOO_MANY_EXTENSIONS', message, { limit });
}

function checkedName(text: string): string {
  const length = [...text].length;
  if (length < 1 || length > NAME_MAX) {
    throw invalidField('fileName', `must be 1 to ${NAME_MAX} characters.`);
  }
  if (!text.isWellFormed()) throw new Fault('INVALID_FIELD', '`fileName` must be Unicode.');
  return text;
}

function toProto({ id, projectId, fileName, createdAt, updatedAt }: ExtensionRow): Extension {
  return {
    id,
    projectId,
    fileName,
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
  };
}
