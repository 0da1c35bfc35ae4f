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
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { openSemaphore } from '../../proto/sharing/semaphore.ts';
import { resourceOf } from '../api/answers.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { isId, newId } from '../common/ids.ts';
import type { ExtensionRow } from '../store/types/files.ts';
import type { Store } from '../store/types.ts';
import type { Blobs } from './blobs.ts';
import type { Stored } from './checked-bytes.ts';

/** Source: extensions.proto. */
const NAME_LENGTH = { min: 1, max: 255, unit: ' characters' };
/** Concurrent verifications: each zip is unpacked. One per project. Ours. */
const CHECKS = { max: 2, ofOwner: 1 };

type Options = {
  store: Store;
  files: Pick<Blobs, 'local' | 'remove'>;
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
    blob: Stored,
    { projectId, call: { signal } }: ProjectCaller,
  ): Promise<void> {
    using _ = await semaphore.acquire(signal, projectId);
    try {
      await using file = await files.local(blob, signal);
      await checkExtension(file.path, { signal });
    } catch (error) {
      if (!(error instanceof ExtensionError)) throw error;
      throw invalidField('file', `is no extension: ${error.message}.`);
    }
  }

  return {
    async createExtension({ fileName: given, blobId }, caller) {
      const { projectId } = caller;
      const blob = isId(blobId) ? await store.getBlob(blobId) : undefined;
      if (blob?.projectId !== projectId || blob.kind !== 'EXTENSION') {
        throw notFound('Blob', blobId);
      }
      try {
        const fileName = checkedName(given);
        await check(blob, caller);
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

    // An extension id is a plain string in the interface: text that is not a UUID is unknown, not
    // malformed.
    async getExtension({ id }, { projectId }) {
      const own = { id: id.toLowerCase(), projectId };
      const row = isId(id) ? await store.getExtension(own) : undefined;
      return { extension: toProto(orNotFound(row, 'Extension', id)) };
    },

    async deleteExtension({ id }, { projectId }) {
      const own = { id: id.toLowerCase(), projectId, at: now() };
      const deleted = isId(id) ? await store.deleteExtension(own) : undefined;
      await files.remove(...orNotFound(deleted, 'Extension', id).dropped);
      return {};
    },
  };
}

function tooMany(limit: number): Fault {
  const message = `A project has at most ${limit} extensions. Delete one first.`;
  return new Fault('TOO_MANY_EXTENSIONS', message, { limit });
}

function checkedName(text: string): string {
  inRange('fileName', [...text].length, NAME_LENGTH);
  if (!text.isWellFormed()) throw new Fault('INVALID_FIELD', '`fileName` must be Unicode.');
  return text;
}

function toProto({ fileName, ...row }: ExtensionRow): Extension {
  return { ...resourceOf(row), fileName };
}
