/**
 * Signing keys: the token in a session's connectUrl, valid until the session ends. All clients of
 * one API key receive the same token; it contains the public part of that key and is revoked with
 * it. Tokens are not stored: they are the ids of session and key with an HMAC under a key of the
 * data directory, in base64url. A token without an API key authenticates to the session server.
 * Layout: id (16 bytes) | public part of the API key (8), or nothing | HMAC-SHA-256 (32).
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Sealer } from '../common/sealer.ts';

const ID_BYTES = 16;
const MAC_BYTES = 32;
/** Of 48 or 56 bytes. */
const SIGNING_KEY = /^[\w-]{64}(?:[\w-]{11})?$/;
const KEY_ID = /^[a-z0-9]{8}$/;

export type Signed = { sessionId: string; keyId?: string | undefined };

export type SigningKeys = ReturnType<typeof signingKeys>;

export function signingKeys(sealer: Pick<Sealer, 'derive'>) {
  const key = sealer.derive('session signing keys');
  const macOf = (body: Uint8Array) => createHmac('sha256', key).update(body).digest();

  return {
    of(sessionId: string, keyId = ''): string {
      const id = Buffer.from(sessionId.replaceAll('-', ''), 'hex');
      const body = Buffer.concat([id, Buffer.from(KEY_ID.test(keyId) ? keyId : '')]);
      return Buffer.concat([body, macOf(body)]).toString('base64url');
    },
    /** The session of a key, and its API key; undefined for an invalid key. */
    read(signingKey: string): Signed | undefined {
      if (!SIGNING_KEY.test(signingKey)) return undefined;
      const bytes = Buffer.from(signingKey, 'base64url');
      // the last character of 56 bytes has spare bits: only one spelling is valid
      if (bytes.toString('base64url') !== signingKey) return undefined;
      const body = bytes.subarray(0, -MAC_BYTES);
      if (!timingSafeEqual(bytes.subarray(-MAC_BYTES), macOf(body))) return undefined;
      const sessionId = uuid(body.toString('hex', 0, ID_BYTES));
      const keyId = body.toString('latin1', ID_BYTES);
      return keyId === '' ? { sessionId } : { sessionId, keyId };
    },
  };
}

/** The UUID of 32 hexadecimal digits. */
export function uuid(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
