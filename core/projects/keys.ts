/**
 * API keys that a project manages itself, in the console. A key is returned once and stored as its
 * hash. A caller sees keys of its own project only. The operator's calls are in operators.ts.
 */
import type {
  ConsoleSettingsServiceService,
  ProjectKey,
} from '../../proto/gen/tabern/v1/settings.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { dateOf } from '../api/answers.ts';
import { type ForgetKey, hashOf, newApiKey } from '../api/authentication.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { ProjectKeyRow } from '../store/types/projects.ts';
import type { Store } from '../store/types.ts';
import { checkedName } from './operators.ts';
import { SINCE_MS } from './revoked-keys.ts';

/** Valid keys of one project. Ours: one for each person and each machine. */
export const KEYS_MAX = 100;
/** With those that were revoked recently, with which runners still compare. Ours. */
const RECENT_MAX = 1_000;
/** Older revoked keys that stay, as a record. Ours. */
const KEPT_MAX = 1_000;
/** Revoked keys in a list. Source: settings.proto. */
const REVOKED_SHOWN = 100;
/** Of a key of a login by the operator's link. */
const BY_LINK = '';

type Handlers = Service<typeof ConsoleSettingsServiceService, ProjectCaller>;
type Options = {
  store: Pick<Store, 'listProjectKeys' | 'createProjectKey' | 'revokeProjectKey'>;
  now: () => number;
  /** Removes a revoked key from the cache. */
  forgetKey: ForgetKey;
};

export function keyService({
  store,
  now,
  forgetKey,
}: Options): Pick<Handlers, 'listKeys' | 'createKey' | 'revokeKey'> {
  const list = (projectId: string) =>
    store.listProjectKeys({ projectId, revokedMax: REVOKED_SHOWN, at: now() });

  async function shown(projectId: string, id: string): Promise<ProjectKey> {
    const keys = await list(projectId);
    return toProto(
      orNotFound(
        keys.find((key) => key.id === id),
        'API key',
        id,
      ),
    );
  }

  return {
    async listKeys(_, { projectId, keyId }) {
      return { keys: (await list(projectId)).map(toProto), ownKeyId: keyId };
    },

    async createKey({ name: given }, { projectId, keyId }) {
      const name = checkedName(given, 0);
      const { key: text, publicId } = newApiKey();
      const at = now();
      const key = { hash: hashOf(text), projectId, publicId, name, madeBy: keyId ?? BY_LINK, at };
      const counts = { max: KEYS_MAX, recentMax: RECENT_MAX, keptMax: KEPT_MAX };
      const added = await store.createProjectKey(key, { ...counts, since: at - SINCE_MS });
      if (added === 'full') throw tooMany();
      return { key: await shown(projectId, publicId), text };
    },

    async revokeKey({ id, last: evenLast }, { projectId }) {
      const revoked = await store.revokeProjectKey({ id, projectId, evenLast, at: now() });
      const outcome = orNotFound(revoked, 'API key', id);
      if (outcome === 'last') {
        const advice = 'Make another one first, or set `last` to revoke it all the same.';
        throw new Fault('LAST_API_KEY', `This is the only valid key of the project. ${advice}`);
      }
      forgetKey(id);
      return { key: await shown(projectId, id) };
    },
  };
}

function tooMany(): Fault {
  const facts = { limit: KEYS_MAX, limitOfDay: RECENT_MAX };
  const message =
    `A project has at most ${KEYS_MAX} valid API keys, and ${RECENT_MAX} with those that were ` +
    'revoked in the last 24 hours. Revoke one that is not needed, or wait.';
  return new Fault('TOO_MANY_API_KEYS', message, facts);
}

function toProto({ createdAt, lastUsedAt, revokedAt, madeBy, ...row }: ProjectKeyRow): ProjectKey {
  const times = { lastUsedAt: dateOf(lastUsedAt), revokedAt: dateOf(revokedAt) };
  return { ...row, createdAt: new Date(createdAt), ...times, madeBy: madeBy || undefined };
}
