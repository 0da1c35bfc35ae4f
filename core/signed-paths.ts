/**
 * Signed URLs of one kind of object: minted when somebody asks, read back when somebody comes with
 * one. Each kind has a key of its own, so that no URL of one opens another. Path and query only:
 * core knows no hosts.
 */
import { type LinkMethod, readLink, signLink } from './blobs/links.ts';
import type { Sealer } from './seal.ts';

export type SignedPaths = {
  sign(grant: { method: LinkMethod; path: string; projectId: string; lifeMs: number }): string;
  /**
   * What the URL was signed for. Throws URL_SIGNATURE_INVALID or URL_EXPIRED; `graceMs` is for what
   * began before the URL expired.
   */
  read(method: LinkMethod, url: string, graceMs?: number): { path: string; projectId: string };
};

export function signedPaths(sealer: Sealer, purpose: string, now: () => number): SignedPaths {
  const key = sealer.derive(`signed URLs of ${purpose}`);
  return {
    sign: ({ lifeMs, ...grant }) => signLink(key, { ...grant, expiresAt: now() + lifeMs }),
    read: (method, url, graceMs = 0) => readLink(key, { method, url, now: now() - graceMs }),
  };
}
