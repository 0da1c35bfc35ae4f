/**
 * The signed URLs of contexts: PUT uploads content, GET downloads it, both at
 * `/v1/contexts/{id}/content`. Path and query only: core does not know the public address.
 */

import { must } from '../../proto/common/must.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { isId } from '../common/ids.ts';
import { type LinkOptions, signedPaths } from '../files/signed-urls.ts';
import type { LinkMethod } from '../files/url-signature.ts';

/** Ours: a client compresses and encrypts a directory before it sends. */
const UPLOAD_LIFE_MS = 3_600_000;
/** Source: proto/spec/contexts.md 5. */
const DOWNLOAD_LIFE_MS = 600_000;

const PATH = /^\/v1\/contexts\/([^/]+)\/content$/;

type Named = { id: string; projectId: string };

export type ContextLinks = {
  /** `keyId`: the public part of the requesting API key. */
  upload(context: Named, keyId: string | undefined): string;
  download(context: Named, keyId: string | undefined): string;
  /**
   * The context of the URL. Throws URL_SIGNATURE_INVALID or URL_EXPIRED; `graceMs` is for requests
   * that began before the URL expired.
   */
  read(method: LinkMethod, url: string, graceMs?: number): Promise<Named>;
};

export function contextLinks(options: LinkOptions): ContextLinks {
  const paths = signedPaths('contexts', options);
  const pathOf = ({ id, projectId }: Named) => ({ path: `/v1/contexts/${id}/content`, projectId });
  return {
    upload: (context, keyId) =>
      paths.sign({ method: 'PUT', ...pathOf(context), keyId, lifeMs: UPLOAD_LIFE_MS }),
    download: (context, keyId) =>
      paths.sign({ method: 'GET', ...pathOf(context), keyId, lifeMs: DOWNLOAD_LIFE_MS }),
    async read(method, url, graceMs) {
      const { path, projectId } = await paths.read(method, url, graceMs);
      const id = must(PATH.exec(path)?.[1], 'the id in a path that we signed');
      if (!isId(id)) throw new Fault('URL_SIGNATURE_INVALID', 'Invalid signature.');
      return { id, projectId };
    },
  };
}
