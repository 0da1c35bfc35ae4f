/** The context and the extension that the params of a session name. */
import { notFound } from '../../proto/rpc/errors.ts';
import { isId } from '../common/ids.ts';
import type { Store } from '../store/types.ts';
import type { SessionParams } from '../validation/session-params.ts';

type Named = { contextId: string | null; extensionId: string | null };

/**
 * Their ids, in lower case like stored ids. Throws RESOURCE_NOT_FOUND when the project has none of
 * that id. The params must be valid. The interface has two fields for an extension; the one outside
 * of browserSettings takes precedence.
 */
export async function resourcesOf(
  store: Pick<Store, 'getContext' | 'getExtension'>,
  params: SessionParams,
  projectId: string,
): Promise<Named> {
  const { browserSettings = {}, extensionId: outer } = params as {
    browserSettings?: { context?: { id: string }; extensionId?: string };
    extensionId?: string;
  };
  const contextId = browserSettings.context?.id.toLowerCase() ?? null;
  const extensionId = (outer ?? browserSettings.extensionId)?.toLowerCase() ?? null;
  const lookUp = async (
    type: string,
    id: string | null,
    get: Store['getContext' | 'getExtension'],
  ) => {
    if (id === null || (isId(id) && (await get({ id, projectId })))) return;
    throw notFound(type, id);
  };
  await lookUp('Context', contextId, store.getContext);
  await lookUp('Extension', extensionId, store.getExtension);
  return { contextId, extensionId };
}
