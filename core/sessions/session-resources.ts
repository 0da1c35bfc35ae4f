/** The context, the extensions and the certificates that the params of a session name. */
import { invalidField, notFound } from '../../proto/rpc/errors.ts';
import { isId } from '../common/ids.ts';
import type { Store } from '../store/types.ts';
import { EXTENSIONS_MAX, type SessionParams } from '../validation/session-params.ts';

/** Of the certificates of a session, in bytes of PEM. Source: sessions.proto. */
const CERTIFICATES_MAX_BYTES = 128 << 10;

/** `extensionId`: of the field that the interface has twice. */
type Named = { contextId: string | null; extensionId: string | null };
type Lookups = Pick<Store, 'getContext' | 'getExtension' | 'getCertificate'>;

/**
 * Their ids, in lower case like stored ids. Throws RESOURCE_NOT_FOUND when the project has none of
 * that id, and INVALID_FIELD for a certificate or for too many of them. The params must be valid.
 * The interface has two fields for an extension; the one outside of browserSettings takes
 * precedence.
 */
export async function resourcesOf(
  store: Lookups,
  params: SessionParams,
  projectId: string,
): Promise<Named> {
  const {
    browserSettings = {},
    extensionId: outer,
    proxySettings = {},
  } = params as {
    browserSettings?: { context?: { id: string }; extensionId?: string; extensions?: string[] };
    extensionId?: string;
    proxySettings?: { caCertificates?: string[] };
  };
  const contextId = browserSettings.context?.id.toLowerCase() ?? null;
  const extensionId = (outer ?? browserSettings.extensionId)?.toLowerCase() ?? null;
  const { extensions = [] } = browserSettings;
  const ids = new Set([extensionId, ...extensions.map((id) => id.toLowerCase())]);
  ids.delete(null);
  if (ids.size > EXTENSIONS_MAX) {
    const problem = `must be at most ${EXTENSIONS_MAX}, with extensionId.`;
    throw invalidField('browserSettings.extensions', problem);
  }
  const lookUp = async (
    type: string,
    id: string | null,
    get: Store['getContext' | 'getExtension'],
  ) => {
    if (id === null || (isId(id) && (await get({ id, projectId })))) return;
    throw notFound(type, id);
  };
  await lookUp('Context', contextId, store.getContext);
  for (const id of ids) await lookUp('Extension', id, store.getExtension);
  await checkCertificates(store, proxySettings.caCertificates ?? [], projectId);
  return { contextId, extensionId };
}

async function checkCertificates(
  store: Lookups,
  ids: readonly string[],
  projectId: string,
): Promise<void> {
  let size = 0;
  for (const [index, text] of ids.entries()) {
    const id = text.toLowerCase();
    const found = isId(id) ? await store.getCertificate({ id, projectId }) : undefined;
    if (found === undefined) {
      const field = `proxySettings.caCertificates[${index}]`;
      throw invalidField(field, 'must be a certificate of this project.');
    }
    size += found.size;
  }
  if (size <= CERTIFICATES_MAX_BYTES) return;
  const problem = `must be at most ${CERTIFICATES_MAX_BYTES} bytes in all.`;
  throw invalidField('proxySettings.caCertificates', problem);
}
