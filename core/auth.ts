/**
 * Who calls: a project by its API key, the runner or the gateway by its token. Keys are stored and
 * found as the SHA-256 of their whole text (32 random bytes need no slow hash); tokens are two
 * files beside the database. A key reads svc_<8: public id>_<43: 32 random bytes, base64url><6:
 * checksum of what stands before it>.
 */
import { createHash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { Fault } from '../proto/errors.ts';
import type { Store } from './store/types.ts';

export type Caller =
  | { kind: 'project'; projectId: string }
  | { kind: 'runner' }
  | { kind: 'gateway' };

export type Tokens = { runner: string; gateway: string };

export type Authenticate = (metadata: Readonly<Record<string, string>>) => Promise<Caller>;

/** A revoked key is refused on the next request or this much later. Source: reliability.md R7.1. */
const KEY_CACHE_MS = 1_000;
/** Ours: far more keys than one installation uses within a second. */
const KEY_CACHE_MAX = 1_000;

const PUBLIC_ID_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';

export function newApiKey(): { key: string; publicId: string } {
  const letters = Array.from({ length: 8 }, () => PUBLIC_ID_ALPHABET[randomInt(36)]);
  const publicId = letters.join('');
  const body = `svc_${publicId}_${randomBytes(32).toString('base64url')}`;
  return { key: body + checksum(body), publicId };
}

/** Lets a scanner tell a key from text that looks like one. */
export function checksum(body: string): string {
  return createHash('sha256').update(body).digest('base64url').slice(0, 6);
}

export function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** Tells callers by their metadata. Throws API_KEY_MISSING or API_KEY_INVALID. */
export function authenticator(options: {
  store: Pick<Store, 'findApiKey'>;
  tokens: Tokens;
  now: () => number;
}): Authenticate {
  const { store, tokens, now } = options;
  const digests = { runner: hashOf(tokens.runner), gateway: hashOf(tokens.gateway) };
  const cache = new Map<string, { projectId: string; until: number }>();

  async function projectOf(key: string): Promise<string> {
    const hash = hashOf(key);
    const name = hash.toString('base64');
    const known = cache.get(name);
    if (known && known.until > now()) return known.projectId;
    cache.delete(name);
    const found = await store.findApiKey(hash);
    if (!found) throw new Fault('API_KEY_INVALID', 'Invalid API key.');
    if (cache.size >= KEY_CACHE_MAX) cache.clear();
    cache.set(name, { projectId: found.projectId, until: now() + KEY_CACHE_MS });
    return found.projectId;
  }

  return async (metadata) => {
    const token = /^Bearer (.+)$/i.exec(metadata['authorization'] ?? '')?.[1];
    if (token !== undefined) {
      const digest = hashOf(token);
      const isRunner = timingSafeEqual(digest, digests.runner);
      const isGateway = timingSafeEqual(digest, digests.gateway);
      if (isRunner) return { kind: 'runner' };
      if (isGateway) return { kind: 'gateway' };
      throw new Fault('API_KEY_INVALID', 'Invalid API key.');
    }
    const key = metadata['x-svc-api-key'];
    if (key === undefined || key === '') {
      const message = 'Missing API key. Send it in the X-SVC-API-Key header.';
      throw new Fault('API_KEY_MISSING', message);
    }
    return { kind: 'project', projectId: await projectOf(key) };
  };
}
