/**
 * Contexts: stored, encrypted browser user-data directories. active -> deleted, once. Each context
 * has its own RSA key pair, taken from the pool; clients encrypt with its public key.
 * proto/spec/contexts.md 1 to 3.
 */

import type { Context, ContextServiceService } from '../../proto/gen/tabern/v1/contexts.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readPage } from '../api/pagination.ts';
import { isId, newId } from '../common/ids.ts';
import type { BlobFiles } from '../files/blob-files.ts';
import { type Quotas, quotaExceeded } from '../projects/quotas.ts';
import type { ContextRow } from '../store/types/contexts.ts';
import type { Store } from '../store/types.ts';
import type { KeyPool } from './key-pool.ts';
import type { ContextLinks } from './links.ts';

/** In characters (code points) after trimming. Source: proto/spec/contexts.md 2. */
const NAME_MAX_LENGTH = 128;
/** Source: proto/spec/contexts.md 1; the only one supported. */
const CIPHER_ALGORITHM = 'AES-256-CBC';
/** In bytes. */
const INITIALIZATION_VECTOR_SIZE = 16;
const WHITE_SPACE = /^[\p{White_Space}\uFEFF]$/u;

type Options = {
  store: Store;
  keys: KeyPool;
  quotas: Pick<Quotas, 'limits'>;
  links: ContextLinks;
  files: Pick<BlobFiles, 'remove'>;
  now: () => number;
};

/** RPCs for projects; content.ts has the others. */
export type ContextMethods = Omit<typeof ContextServiceService, 'replaceContext'>;

export function contextService(options: Options): Service<ContextMethods, ProjectCaller> {
  const { store, links, files, now } = options;

  async function find(id: string, projectId: string): Promise<ContextRow> {
    // A context id is a plain string in the interface: text that is not a UUID is unknown, not
    // malformed.
    const row = isId(id) ? await store.getContext({ id: id.toLowerCase(), projectId }) : undefined;
    if (!row) throw notFound('Context', id);
    return row;
  }

  return {
    async createContext(request, { projectId, keyId, call }) {
      if (request.projectId !== undefined && request.projectId !== projectId) {
        throw new Fault('PROJECT_MISMATCH', 'This API key cannot access the given project.', {
          projectId: request.projectId,
        });
      }
      const name = request.name === undefined ? null : checkedName(request.name);
      const context = await createWhenKeyed(options, { projectId, name }, call);
      return toCreated(context, links.upload(context, keyId));
    },

    async getContext({ id }, { projectId }) {
      return { context: toProto(await find(id, projectId)) };
    },

    async listContexts(request, { projectId }) {
      return readPage(request, (page) => store.listContexts({ ...page, projectId }), toProto);
    },

    /** Rotates the upload URL for published clients: returns a new URL, changes nothing. */
    async updateContext({ id }, { projectId, keyId }) {
      const context = await find(id, projectId);
      return toCreated(context, links.upload(context, keyId));
    },

    async deleteContext({ id }, { projectId }) {
      const own = { id: id.toLowerCase(), projectId, at: now() };
      const deleted = isId(id) ? await store.deleteContext(own) : undefined;
      if (!deleted) throw notFound('Context', id);
      await Promise.all(deleted.dropped.map(files.remove));
      return {};
    },

    async getContextDownload({ id }, { projectId, keyId }) {
      const context = await find(id, projectId);
      const content = await store.getContextContent({ id: context.id, projectId });
      if (!content?.blobId) throw notFound('Context content', id);
      return { downloadUrl: links.download(context, keyId) };
    },
  };
}

/** Waits for a key pair when the pool is empty or other calls wait, within the call's deadline. */
async function createWhenKeyed(
  { store, keys, quotas, now }: Options,
  { projectId, name }: { projectId: string; name: string | null },
  call: Call,
): Promise<ContextRow> {
  const { contexts: max } = await quotas.limits(projectId);
  const key = name === null ? null : nameKey(name);
  const wanted = { id: newId(), projectId, name, nameKey: key, max };
  if (keys.isAwaited) await keys.wait(projectId, call);
  for (;;) {
    const made = await store.createContext({ ...wanted, at: now() });
    switch (made.outcome) {
      case 'created':
        keys.taken();
        return made.context;
      case 'name-taken':
        throw new Fault('CONTEXT_NAME_TAKEN', `A context named "${name}" already exists.`, {
          name: name ?? '',
        });
      case 'full':
        throw quotaExceeded('contexts', max);
      case 'no-key':
        await keys.wait(projectId, call);
    }
  }
}

/** The name as stored. */
function checkedName(text: string): string {
  const name = trimmed(text);
  const length = [...name].length;
  if (length < 1 || length > NAME_MAX_LENGTH) {
    throw invalidField('name', `must be 1 to ${NAME_MAX_LENGTH} characters.`);
  }
  if (!name.isWellFormed()) throw invalidField('name', 'must be well-formed Unicode.');
  return name;
}

/**
 * All white space of Unicode: `trim()` omits U+0085. Character by character: a pattern would be
 * quadratic.
 */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start += 1;
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/**
 * Names with one key are the same name. Folded character by character, by way of upper case: lower
 * case alone keeps σ from ς and ß from SS. Only the dotless ı has another letter's upper case.
 * Folding may leave what NFC composes, so it is composed again.
 */
function nameKey(name: string): string {
  const folded = Array.from(name.normalize('NFC'), (char) =>
    char === 'ı' ? char : char.toLowerCase().toUpperCase().toLowerCase(),
  );
  return folded.join('').normalize('NFC');
}

function toCreated(context: ContextRow, uploadUrl: string) {
  return {
    id: context.id,
    publicKey: context.publicKey,
    cipherAlgorithm: CIPHER_ALGORITHM,
    initializationVectorSize: INITIALIZATION_VECTOR_SIZE,
    uploadUrl,
  };
}

function toProto({ id, projectId, name, createdAt, updatedAt }: ContextRow): Context {
  return {
    id,
    projectId,
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
    name: name ?? undefined,
  };
}
