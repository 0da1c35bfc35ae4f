/**
 * Tokens of live views: whoever has one may see and drive one session until it expires or the
 * session ends, without a key. Signed, not stored:
 *   base64url(the session's uuid, 16 bytes | expiry in ms since 1970, 8 | HMAC-SHA-256, 32)
 * with the public part of the API key that it was given to, and ends with, in front of the HMAC: 8.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Sealer } from '../common/sealer.ts';

const ID_BYTES = 16;
const KEY_AT = ID_BYTES + 8;
const BODY_BYTES = KEY_AT + 8;
/** 64 bytes in base64url. */
const TOKEN = /^[\w-]{86}$/;

export type View = { sessionId: string; expiresAt: Date; keyId?: string };

export type ViewTokens = {
  of(view: View): string;
  /**
   * What the token opens; undefined when we never signed it. Throws URL_EXPIRED when its time is
   * over. Whether the session still runs is the caller's to see.
   */
  read(token: string): View | undefined;
};

export function viewTokens(sealer: Sealer, now: () => number): ViewTokens {
  const key = sealer.derive('tokens of live views');
  const signed = (body: Buffer): string =>
    Buffer.concat([body, createHmac('sha256', key).update(body).digest()]).toString('base64url');
  return {
    of({ sessionId, expiresAt, keyId = '' }) {
      const body = Buffer.alloc(BODY_BYTES);
      body.write(sessionId.replaceAll('-', ''), 'hex');
      body.writeBigUInt64BE(BigInt(expiresAt.getTime()), ID_BYTES);
      body.write(keyId, KEY_AT, 'latin1');
      return signed(body);
    },
    read(token) {
      if (!TOKEN.test(token)) return undefined;
      const body = Buffer.from(token, 'base64url').subarray(0, BODY_BYTES);
      // As text: the last character of base64url has bits that decoding would drop.
      if (!timingSafeEqual(Buffer.from(signed(body)), Buffer.from(token))) return undefined;
      const expiresAt = Number(body.readBigUInt64BE(ID_BYTES));
      if (now() >= expiresAt) {
        throw new Fault('URL_EXPIRED', 'The live view has expired. Ask for another.');
      }
      const sessionId = uuid(body.toString('hex', 0, ID_BYTES));
      const keyId = body.toString('latin1', KEY_AT).replaceAll('\0', '');
      const view = { sessionId, expiresAt: new Date(expiresAt) };
      return keyId === '' ? view : { ...view, keyId };
    },
  };
}

function uuid(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
