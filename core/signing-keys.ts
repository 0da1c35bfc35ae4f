/**
 * Signing keys: the token in a session's connectUrl, good for the session's whole life and always
 * the same. It names its session and is nothing that is stored: a session's id with its HMAC under
 * a key of the data directory, in base64url.
 * Layout: id (16 bytes) | HMAC-SHA-256 (32).
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Sealer } from './seal.ts';

const PURPOSE = 'session signing keys';
const ID_BYTES = 16;
/** Of 48 bytes: no padding and no bits left over, so each key has one spelling. */
const SIGNING_KEY = /^[\w-]{64}$/;

export type SigningKeys = {
  of(sessionId: string): string;
  /** The session it opens; undefined for a key that we have not made. */
  read(signingKey: string): string | undefined;
};

export function signingKeys(sealer: Pick<Sealer, 'derive'>): SigningKeys {
  const key = sealer.derive(PURPOSE);
  const macOf = (id: Uint8Array) => createHmac('sha256', key).update(id).digest();

  return {
    of(sessionId) {
      const id = Buffer.from(sessionId.replaceAll('-', ''), 'hex');
      return Buffer.concat([id, macOf(id)]).toString('base64url');
    },
    read(signingKey) {
      if (!SIGNING_KEY.test(signingKey)) return undefined;
      const bytes = Buffer.from(signingKey, 'base64url');
      const id = bytes.subarray(0, ID_BYTES);
      if (!timingSafeEqual(bytes.subarray(ID_BYTES), macOf(id))) return undefined;
      return id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    },
  };
}
