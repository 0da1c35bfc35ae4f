/**
 * Authentication: a project by its API key (in `x-svc-api-key`, or as a Bearer token) or by a login
 * of the console (in `x-console-login`), the operator by such a login or by its token, the holder
 * of a link to one session (in `x-console-share`), the runner or the gateway by its token. Only an
 * operator login may name the project for which it calls, in `x-console-project`; with every other
 * credential that is refused. Keys are stored and looked up by the SHA-256 of their text (32 random
 * bytes need no slow hash); tokens are settings, or files next to the database. A key is
 * svc_<8: public id>_<43: 32 random bytes, base64url><6: checksum of the text before it>.
 */
import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { Fault } from '../../proto/rpc/errors.ts';
import type { LoginKind } from '../store/types/audit.ts';
import type { Store } from '../store/types.ts';
import { orNotFound } from './checks.ts';

/** The login of the console that a call counts with; `keyId` for a login by an API key. */
export type Login = { kind: LoginKind; keyId?: string | undefined };

export type Caller =
  | { kind: 'project'; projectId: string; keyId?: string | undefined; login?: Login | undefined }
  | Share
  | { kind: 'operator'; login?: Login | undefined }
  | { kind: 'runner' }
  | { kind: 'gateway' };

/** `keyId`: the public part of its API key; absent for a login by a one-time code. */
export type ProjectCaller = Extract<Caller, { kind: 'project' }>;

/** Of a login of the console. */
export type LoginCaller = ProjectCaller | Extract<Caller, { kind: 'operator' }>;

/** May read one session until then, in Unix ms. `keyId`: of the API key that made the link. */
export type Share = {
  kind: 'share';
  sessionId: string;
  projectId: string;
  keyId?: string | undefined;
  until: number;
  hasLog: boolean;
};

const ROLES = ['runner', 'gateway', 'operator'] as const;
export type TokenRole = (typeof ROLES)[number];
/** `next`: also accepted, while a token is changed. */
export type Tokens = Record<TokenRole, string> & {
  next?: { [Role in TokenRole]?: string | undefined };
};

/** Forgets a revoked key, by its public part: its next use is refused. */
export type ForgetKey = (keyId: string) => void;

export type Authenticate = (metadata: Readonly<Record<string, string>>) => Promise<Caller>;

/** Cache time of a key that another process may have revoked. Source: proto/spec/rest.md 6. */
const KEY_CACHE_MS = 1_000;
/** Ours: far more keys than one installation uses per second. */
const KEY_CACHE_MAX = 1_000;

/** The last use is stored to the minute. */
const MINUTE_MS = 60_000;
const PUBLIC_ID_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** The public part of a key: 8 characters. */
export function newPublicId(): string {
  return Array.from({ length: 8 }, () => PUBLIC_ID_ALPHABET[randomInt(36)]).join('');
}

export function newApiKey(): { key: string; publicId: string } {
  const publicId = newPublicId();
  const body = `svc_${publicId}_${randomBytes(32).toString('base64url')}`;
  return { key: body + checksum(body), publicId };
}

/** The public part of a valid key. */
export function publicIdOf(key: string): string {
  return key.split('_')[1] ?? '';
}

/** The checksum, by which scanners distinguish keys from similar text. */
export function checksum(body: string): string {
  return hash('sha256', body, 'base64url').slice(0, 6);
}

export function hashOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/** Authenticates callers by their metadata. Throws API_KEY_MISSING or API_KEY_INVALID. */
export function authenticator(options: {
  store: Pick<Store, 'findApiKey' | 'useApiKey' | 'getProject'>;
  tokens: Tokens;
  now: () => number;
  /** Clock of the cache: monotonic. */
  steady: () => number;
  onFirstUse?: (keyId: string) => void;
  /** The caller of a login of the console; throws API_KEY_INVALID. */
  loginCaller: (login: string) => Promise<LoginCaller>;
  /** The caller of a link; throws URL_SIGNATURE_INVALID or URL_EXPIRED. */
  shareCaller: (token: string) => Promise<Share>;
}): { authenticate: Authenticate; forgetKey: ForgetKey } {
  const { store, tokens, now, steady, onFirstUse, loginCaller, shareCaller } = options;
  const digests = ROLES.flatMap((kind) =>
    [tokens[kind], tokens.next?.[kind]].flatMap((token) =>
      token === undefined ? [] : { kind, digest: hashOf(token) },
    ),
  );
  const cache = new Map<string, { caller: ProjectCaller; until: number }>();

  async function projectOf(key: string): Promise<ProjectCaller> {
    const hash = hashOf(key);
    const name = hash.toString('base64');
    const known = cache.get(name);
    if (known && known.until > steady()) return known.caller;
    cache.delete(name);
    const found = await store.findApiKey(hash);
    if (!found) throw new Fault('API_KEY_INVALID', 'Invalid API key.');
    const { projectId, publicId: keyId } = found;
    if (found.lastUsedAt === null) onFirstUse?.(keyId);
    recordUse(keyId, found.lastUsedAt);
    if (cache.size >= KEY_CACHE_MAX) cache.clear();
    const caller = { kind: 'project', projectId, keyId } as const;
    cache.set(name, { caller, until: steady() + KEY_CACHE_MS });
    return caller;
  }

  /** Not awaited: after a failure, the next use stores it again. */
  function recordUse(id: string, lastUsedAt: number | null): void {
    const at = now();
    if (lastUsedAt !== null && at - lastUsedAt < MINUTE_MS) return;
    store.useApiKey({ id, at }).catch(() => undefined);
  }

  const forgetKey: ForgetKey = (keyId) => {
    for (const [name, { caller }] of cache) if (caller.keyId === keyId) cache.delete(name);
  };

  const callerOf: Authenticate = async (metadata) => {
    const login = metadata['x-console-login'];
    if (login !== undefined) return loginCaller(login);
    const share = metadata['x-console-share'];
    if (share !== undefined) return shareCaller(share);
    const token = /^Bearer (.+)$/i.exec(metadata['authorization'] ?? '')?.[1];
    if (token !== undefined) {
      const digest = hashOf(token);
      // filter: compares with all of them, whichever is equal
      const [known] = digests.filter((one) => timingSafeEqual(digest, one.digest));
      if (known) return { kind: known.kind };
    }
    const key = metadata['x-svc-api-key'] ?? token;
    if (!key || (token !== undefined && token !== key)) throw keyMissing();
    return projectOf(key);
  };
  const authenticate: Authenticate = async (metadata) => {
    const caller = await callerOf(metadata);
    const named = metadata['x-console-project'];
    if (named === undefined) return caller;
    if (caller.kind !== 'operator' || caller.login === undefined) {
      throw new Fault('TOKEN_REQUIRED', 'Only an operator login may name a project.');
    }
    const { id: projectId } = orNotFound(await store.getProject(named), 'Project', named);
    return { kind: 'project', projectId, login: caller.login };
  };
  return { authenticate, forgetKey };
}

export function keyMissing(): Fault {
  return new Fault('API_KEY_MISSING', 'Missing API key. Send it in the X-SVC-API-Key header.');
}
