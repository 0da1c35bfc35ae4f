/**
 * Signed URLs: whoever has one may do one thing with one object until it expires, any number of
 * times, without a key. Pure. The signature is HMAC-SHA-256 over method, path (which names the
 * object), project and expiry; a URL has one spelling, and every other is refused. Revoking the API
 * key that asked for it does not end it: its life is short instead.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Fault } from '../../proto/errors.ts';

export type LinkMethod = 'GET' | 'PUT';

/** What a URL allows. */
export type Grant = {
  method: LinkMethod;
  /** Of the object, such as `/v1/contexts/<id>/content`. */
  path: string;
  projectId: string;
  /** Unix milliseconds, whole seconds. */
  expiresAt: number;
};

/** The one spelling of a query. 32 bytes of HMAC make 43 characters. */
const QUERY = /^expires=([1-9]\d{9,11})&project=([0-9a-f-]{36})&signature=([\w-]{43})$/;
const PATH = /^(?:\/[\w-]{1,64}){1,8}(?:\.\w{1,4})?$/;

/** Path and query of the signed URL. */
export function signLink(key: Uint8Array, grant: Grant): string {
  const { path, projectId } = grant;
  const query = `expires=${seconds(grant)}&project=${projectId}`;
  return `${path}?${query}&signature=${signatureOf(key, grant)}`;
}

/**
 * What the URL allows. Throws URL_SIGNATURE_INVALID when we never signed it for this method,
 * URL_EXPIRED when its time is over.
 */
export function readLink(
  key: Uint8Array,
  { method, url, now }: { method: LinkMethod; url: string; now: number },
): Grant {
  const cut = url.indexOf('?');
  const path = url.slice(0, cut);
  const [, expires, project, signature] = QUERY.exec(url.slice(cut + 1)) ?? [];
  if (cut < 0 || !PATH.test(path) || !expires || !project || !signature) throw invalid();
  const grant = { method, path, projectId: project, expiresAt: Number(expires) * 1_000 };
  // As text: the last character of base64url has bits that decoding would drop.
  const isOurs = timingSafeEqual(Buffer.from(signatureOf(key, grant)), Buffer.from(signature));
  if (!isOurs) throw invalid();
  if (now >= grant.expiresAt) {
    throw new Fault('URL_EXPIRED', 'The URL has expired. Ask for another.');
  }
  return grant;
}

/** A line each, and none of them can hold a line break: nothing reads as something else. */
function signatureOf(key: Uint8Array, grant: Grant): string {
  const { method, path, projectId } = grant;
  const text = ['tabern link 1', method, path, projectId, seconds(grant)].join('\n');
  return createHmac('sha256', key).update(text).digest('base64url');
}

function seconds({ expiresAt }: Grant): number {
  return Math.floor(expiresAt / 1_000);
}

function invalid(): Fault {
  return new Fault('URL_SIGNATURE_INVALID', 'Invalid signature.');
}
