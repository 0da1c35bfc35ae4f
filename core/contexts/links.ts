/**
 * The signed URLs of contexts: PUT uploads content, GET downloads it, both at
 * `/v1/contexts/{id}/content`. Path and query only: core does not know the public address.
 */

import { must } from '../../proto/common/must.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { isId } from '../common/ids.ts';
import { type LinkMethod, type LinkOptions, signedPaths } from '../files/url-signature.ts';

/** Ours: a client compresses and encrypts a directory before it sends. */
const UPLOAD_LIFE_MS = 3_600_000;
/** Source: proto/spec/contexts.md 5. */
const DOWNLOAD_LIFE_MS = 600_000;

const PATH = /^\/v1\/contexts\/([^/]+)\/content$/;

type Named = { id: string; projectId: string };

export type ContextLinks = ReturnType<typeof contextLinks>;

/** `keyId`: the public part of the requesting API key. */
export function contextLinks(options: LinkOptions) {
  const paths = signedPaths('contexts', options);
  const grantOf = ({ id, projectId }: Named, keyId: string | undefined) => {
    return { path: `/v1/contexts/${id}/content`, projectId, keyId };
  };
  return {
    upload: (context: Named, keyId: string | undefined): string =>
      paths.sign({ ...grantOf(context, keyId), method: 'PUT', lifeMs: UPLOAD_LIFE_MS }),
    download: (context: Named, keyId: string | undefined): string =>
      paths.sign({ ...grantOf(context, keyId), method: 'GET', lifeMs: DOWNLOAD_LIFE_MS }),
    /** The context of the URL. Throws URL_SIGNATURE_INVALID or URL_EXPIRED. */
    async read(method: LinkMethod, url: string, graceMs?: number): Promise<Named> {
      const { path, projectId } = await paths.read(method, url, graceMs);
      const id = must(PATH.exec(path)?.[1], 'the id in a path that we signed');
      if (!isId(id)) throw new Fault('URL_SIGNATURE_INVALID', 'Invalid signature.');
      return { id, projectId };
    },
  };
}
