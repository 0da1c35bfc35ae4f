/**
 * Signed URLs: whoever has one may do one thing with one object until it expires, any number of
 * times, without a key. Pure. The signature is HMAC-SHA-256 over method, path (which names the
 * object), project, expiry and the API key that it was given to, which it ends with; a URL has one
 * spelling, and every other is refused. Whether that key is good is the caller's to see.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Fault } from '../../proto/rpc/errors.ts';

export type LinkMethod = 'GET' | 'PUT';

/** What a URL allows. */
export type Grant = {
  method: LinkMethod;
  /** Of the object, such as `/v1/contexts/<id>/content`. */
  path: string;
  projectId: string;
  /** Unix milliseconds, whole seconds. */
  expiresAt: number;
  /** Public part of the API key that asked for it; absent when none did. */
  keyId?: string | undefined;
};

/** The one spelling of a query. 32 bytes of HMAC make 43 characters. */
const QUERY =
  /^expires=([1-9]\d{9,11})&project=([0-9a-f-]{36})(?:&key=([a-z0-9]{8}))?&signature=([\w-]{43})$/;
const PATH = /^(?:\/[\w-]{1,64}){1,8}(?:\.\w{1,4})?$/;

/** Path and query of the signed URL. */
export function signLink(key: Uint8Array, grant: Grant): string {
  const { path, projectId, keyId } = grant;
  const ofKey = keyId === undefined ? '' : `&key=${keyId}`;
  const query = `expires=${seconds(grant)}&project=${projectId}${ofKey}`;
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
  const [, expires, project, keyId, signature] = QUERY.exec(url.slice(cut + 1)) ?? [];
  if (cut < 0 || !PATH.test(path) || !expires || !project || !signature) throw invalid();
  const plain = { method, path, projectId: project, expiresAt: Number(expires) * 1_000 };
  const grant = { ...plain, ...(keyId && { keyId }) };
  // As text: the last character of base64url has bits that decoding would drop.
  const isOurs = timingSafeEqual(Buffer.from(signatureOf(key, grant)), Buffer.from(signature));
  if (!isOurs) throw invalid();
  if (now >= grant.expiresAt) throw expired();
  return grant;
}

/** Its time is over, or its API key was revoked: the same to who has it. */
export function expired(): Fault {
  return new Fault('URL_EXPIRED', 'The URL has expired. Ask for another.');
}

/** A line each, and none of them can hold a line break: nothing reads as something else. */
function signatureOf(key: Uint8Array, grant: Grant): string {
  const { method, path, projectId, keyId } = grant;
  const lines = ['tabern link 1', method, path, projectId, seconds(grant)];
  const text = (keyId === undefined ? lines : [...lines, keyId]).join('\n');
  return createHmac('sha256', key).update(text).digest('base64url');
}

function seconds({ expiresAt }: Grant): number {
  return Math.floor(expiresAt / 1_000);
}

function invalid(): Fault {
  return new Fault('URL_SIGNATURE_INVALID', 'Invalid signature.');
}
