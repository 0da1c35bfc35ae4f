/**
 * Tokens of shared sessions: the holder may read one session until the token expires, or the API
 * key that made it is revoked. Tokens are not stored: they are signed, by a key of their own, so
 * that no other token or link of a session is valid as one, nor one as another.
 * Layout: session (16 bytes) | project (16) | expiry (8) | 1 with the log (1) | API key (8) |
 * HMAC-SHA-256 (32), in base64url.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Share } from '../api/authentication.ts';
import type { Sealer } from '../common/sealer.ts';
import type { Store } from '../store/types.ts';
import { isKeyValid } from './locate.ts';
import { uuid } from './signing-keys.ts';

const PROJECT_AT = 16;
const EXPIRY_AT = 32;
const LOG_AT = 40;
const KEY_AT = 41;
const BODY_BYTES = 49;
/** 81 bytes in base64url: without spare bits, so a token has one spelling. */
const TOKEN = /^[\w-]{108}$/;

export type ShareTokens = ReturnType<typeof shareTokens>;

export function shareTokens(options: {
  sealer: Pick<Sealer, 'derive'>;
  store: Pick<Store, 'getApiKey'>;
  now: () => number;
}) {
  const { sealer, store, now } = options;
  const key = sealer.derive('tokens of shared sessions');
  const macOf = (body: Uint8Array) => createHmac('sha256', key).update(body).digest();
  return {
    of({ sessionId, projectId, until, hasLog, keyId = '' }: Omit<Share, 'kind'>): string {
      const body = Buffer.alloc(BODY_BYTES);
      body.write(sessionId.replaceAll('-', ''), 'hex');
      body.write(projectId.replaceAll('-', ''), PROJECT_AT, 'hex');
      body.writeBigUInt64BE(BigInt(until), EXPIRY_AT);
      body.writeUInt8(hasLog ? 1 : 0, LOG_AT);
      body.write(keyId, KEY_AT, 'latin1');
      return Buffer.concat([body, macOf(body)]).toString('base64url');
    },
    /** The rights of the token. Throws URL_SIGNATURE_INVALID or URL_EXPIRED. */
    async read(token: string): Promise<Share> {
      const bytes = Buffer.from(TOKEN.test(token) ? token : '', 'base64url');
      const body = bytes.subarray(0, BODY_BYTES);
      const isOurs =
        body.length === BODY_BYTES && timingSafeEqual(bytes.subarray(BODY_BYTES), macOf(body));
      if (!isOurs) {
        throw new Fault('URL_SIGNATURE_INVALID', 'This link is not valid. Copy all of it.');
      }
      const keyId = body.toString('latin1', KEY_AT).replaceAll('\0', '') || undefined;
      const until = Number(body.readBigUInt64BE(EXPIRY_AT));
      if (now() >= until || !(await isKeyValid(store, keyId))) {
        throw new Fault('URL_EXPIRED', 'This link has expired. Ask for another.');
      }
      const sessionId = uuid(body.toString('hex', 0, PROJECT_AT));
      const projectId = uuid(body.toString('hex', PROJECT_AT, EXPIRY_AT));
      return { kind: 'share', sessionId, projectId, keyId, until, hasLog: body[LOG_AT] === 1 };
    },
  };
}
