/**
 * Contexts: stored, encrypted browser user-data directories. active -> deleted, once. Each context
 * has its own RSA key pair, taken from the pool; clients encrypt with its public key.
 * proto/spec/contexts.md 1 to 3.
 */

import type { Context, ContextServiceService } from '../../proto/gen/tabern/v1/contexts.pb.ts';
import { Fault, notFound } from '../../proto/rpc/errors.ts';
import type { Call } from '../../proto/rpc/local.ts';
import { resourceOf } from '../api/answers.ts';
import { checkProject, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { checkedName, nameKey } from '../api/names.ts';
import { readPage } from '../api/pagination.ts';
import { isId, newId } from '../common/ids.ts';
import type { Blobs } from '../files/blobs.ts';
import { type Quotas, quotaExceeded } from '../projects/quotas.ts';
import type { ContextRow } from '../store/types/contexts.ts';
import type { Store } from '../store/types.ts';
import type { KeyPool } from './key-pool.ts';
import type { ContextLinks } from './links.ts';

/** Source: proto/spec/contexts.md 1; the only one supported. */
const CIPHER_ALGORITHM = 'AES-256-CBC';
/** In bytes. */
const INITIALIZATION_VECTOR_SIZE = 16;

type Options = {
  store: Store;
  keys: KeyPool;
  quotas: Pick<Quotas, 'limits'>;
  links: ContextLinks;
  files: Pick<Blobs, 'remove'>;
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
    return orNotFound(row, 'Context', id);
  }

  return {
    async createContext(request, { projectId, keyId, call }) {
      checkProject(request.projectId, projectId);
      const name = request.name === undefined ? null : checkedName('name', request.name);
      const context = await createWhenKeyed(options, { projectId, name }, call);
      return toCreated(context, links.upload(context, keyId));
    },

    async getContext({ id }, { projectId }) {
      return { context: toProto(await find(id, projectId)) };
    },

    async listContexts(request, { projectId }) {
      return readPage(request, (page) => store.listContexts({ ...page, projectId }), toProto);
    },

    /** Returns a new upload URL, as published clients expect. Changes nothing. */
    async updateContext({ id }, { projectId, keyId }) {
      const context = await find(id, projectId);
      return toCreated(context, links.upload(context, keyId));
    },

    async deleteContext({ id }, { projectId }) {
      const own = { id: id.toLowerCase(), projectId, at: now() };
      const deleted = isId(id) ? await store.deleteContext(own) : undefined;
      await files.remove(...orNotFound(deleted, 'Context', id).dropped);
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
  const wanted = { id: newId(), projectId, name, nameKey: name && nameKey(name), max };
  if (keys.isAwaited) await keys.wait(projectId, call);
  for (;;) {
    const made = await store.createContext({ ...wanted, at: now() });
    switch (made.outcome) {
      case 'created':
        keys.taken();
        return made.context;
      case 'name-taken':
        throw nameTaken(name ?? '');
      case 'full':
        throw quotaExceeded('contexts', max);
      case 'no-key':
        await keys.wait(projectId, call);
    }
  }
}

function nameTaken(name: string): Fault {
  return new Fault('CONTEXT_NAME_TAKEN', `A context named "${name}" already exists.`, { name });
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

function toProto({ name, ...row }: ContextRow): Context {
  return { ...resourceOf(row), name: name ?? undefined };
}
