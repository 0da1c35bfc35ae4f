/**
 * Signed URLs: the holder may do one thing with one object until the URL expires, any number of
 * times, without a key. Pure. The signature is HMAC-SHA-256 over method, path (which names the
 * object), project, expiry and the requesting API key. A URL has one spelling; every other one is
 * refused. Path and query only: core does not know the public address.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Sealer } from '../common/sealer.ts';
import { type IsRevoked, SINCE_MS } from '../projects/revoked-keys.ts';

export type LinkMethod = 'GET' | 'PUT';

/** The rights of a URL. */
export type Grant = {
  method: LinkMethod;
  /** Of the object, such as `/v1/contexts/<id>/content`. */
  path: string;
  projectId: string;
  /** Unix milliseconds, whole seconds. */
  expiresAt: number;
  /** Public part of the requesting API key; absent without one. */
  keyId?: string | undefined;
};

/** The one spelling of a query. 32 bytes of HMAC make 43 characters. */
const QUERY =
  /^expires=([1-9]\d{9,11})&project=([0-9a-f-]{36})(?:&key=([a-z0-9]{8}))?&signature=([\w-]{43})$/;
const PATH = /^(?:\/[\w-]{1,64}){1,8}(?:\.\w{1,4})?$/;

export type LinkOptions = { sealer: Sealer; now: () => number; isRevoked: IsRevoked };

/**
 * Signs and reads the URLs of one kind of object. Each kind has its own key, so that a URL of one
 * kind is not valid for another.
 */
export function signedPaths(purpose: string, { sealer, now, isRevoked }: LinkOptions) {
  const key = sealer.derive(`signed URLs of ${purpose}`);
  return {
    sign: ({ lifeMs, ...grant }: Omit<Grant, 'expiresAt'> & { lifeMs: number }): string =>
      signLink(key, { ...grant, expiresAt: now() + lifeMs }),
    /**
     * The rights of the URL. Throws URL_SIGNATURE_INVALID, or URL_EXPIRED after its time or
     * the revocation of its API key. `graceMs` is for requests that began before the URL expired.
     */
    async read(method: LinkMethod, url: string, graceMs = 0): Promise<Grant> {
      const grant = readLink(key, { method, url, now: now() - graceMs });
      // signed by a clock that was ahead: the URL would outlive the record of the revocation
      if (grant.expiresAt > now() + SINCE_MS) throw expired();
      if (grant.keyId !== undefined && (await isRevoked(grant.keyId))) throw expired();
      return grant;
    },
  };
}

/** Path and query of the signed URL. */
export function signLink(key: Uint8Array, grant: Grant): string {
  const { path, projectId, keyId } = grant;
  const ofKey = keyId === undefined ? '' : `&key=${keyId}`;
  const query = `expires=${seconds(grant)}&project=${projectId}${ofKey}`;
  return `${path}?${query}&signature=${signatureOf(key, grant)}`;
}

/** The rights of the URL. Throws URL_SIGNATURE_INVALID, or URL_EXPIRED after its time. */
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

function expired(): Fault {
  return new Fault('URL_EXPIRED', 'The URL has expired. Ask for another.');
}

/** One line per member, none of which can contain a line break: the text is unambiguous. */
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
