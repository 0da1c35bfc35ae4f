/**
 * Signed URLs of one kind of object: minted when somebody asks, read back when somebody comes with
 * one. Each kind has a key of its own, so that no URL of one opens another. One ends with its time,
 * or with the API key that it was given to. Path and query only: core knows no hosts.
 */

import type { Sealer } from '../common/sealer.ts';
import { type IsRevoked, SINCE_MS } from '../projects/revoked-keys.ts';
import { expired, type LinkMethod, readLink, signLink } from './url-signature.ts';

export type SignedPaths = {
  sign(grant: {
    method: LinkMethod;
    path: string;
    projectId: string;
    keyId: string | undefined;
    lifeMs: number;
  }): string;
  /**
   * What the URL was signed for. Throws URL_SIGNATURE_INVALID or URL_EXPIRED; `graceMs` is for what
   * began before the URL expired.
   */
  read(
    method: LinkMethod,
    url: string,
    graceMs?: number,
  ): Promise<{ path: string; projectId: string }>;
};

export type LinkOptions = { sealer: Sealer; now: () => number; isRevoked: IsRevoked };

export function signedPaths(purpose: string, { sealer, now, isRevoked }: LinkOptions): SignedPaths {
  const key = sealer.derive(`signed URLs of ${purpose}`);
  return {
    sign: ({ lifeMs, ...grant }) => signLink(key, { ...grant, expiresAt: now() + lifeMs }),
    async read(method, url, graceMs = 0) {
      const grant = readLink(key, { method, url, now: now() - graceMs });
      const { path, projectId, keyId, expiresAt } = grant;
      // signed by a clock that was ahead: it would outlive what is known of its key
      if (expiresAt > now() + SINCE_MS) throw expired();
      if (keyId !== undefined && (await isRevoked(keyId))) throw expired();
      return { path, projectId };
    },
  };
}
