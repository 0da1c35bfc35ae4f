/**
 * Operator RPCs: projects with their limits, and API keys. A key is returned once, stored as its
 * hash, and identified by its public part; a project by its id or its name.
 */

import { CONCURRENCY_MAX, QUEUE_MAX, QUOTA_MAX } from '../../proto/common/limits.ts';
import type {
  ApiKey,
  OperatedProject,
  OperatorServiceService,
  ProjectLimits,
} from '../../proto/gen/tabern/v1/operators.pb.ts';
import { Fault, invalidField, notFound } from '../../proto/rpc/errors.ts';
import { type ForgetKey, hashOf, newApiKey } from '../api/authentication.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { newId } from '../common/ids.ts';
import type { ApiKeyRow, LimitChange, OperatedRow } from '../store/types/projects.ts';
import type { Store } from '../store/types.ts';
import { toProto as projectOf } from './projects.ts';
import { QUOTA_NAMES, type QuotaLimits, type Quotas } from './quotas.ts';

/** In characters. Ours: as for contexts. */
const NAME_MAX = 128;
/** In seconds: the default timeout of sessions. Source: proto/spec/sessions.md 1. */
export const DEFAULT_TIMEOUT = 900;

export type OperatorOptions = {
  store: Store;
  now: () => number;
  /** Limits of a project without settings of its own. */
  concurrency: number;
  queueMax: number;
  quotas: Quotas;
  /** Removes a revoked key from the cache. */
  forgetKey: ForgetKey;
};

export function operatorService(
  options: OperatorOptions,
): Omit<Service<typeof OperatorServiceService, MachineCaller>, 'createBackup'> {
  const { store, now, concurrency, queueMax, quotas, forgetKey } = options;
  const shown = async (row: OperatedRow) => {
    const { id } = row;
    const [own, storage] = await Promise.all([quotas.limits(id), quotas.usage(id)]);
    return { ...toProto(row, { queueMax, quotas: own }), storage };
  };

  return {
    async createProject({ name: given, limits }) {
      const name = checkedName(given, 1);
      const at = now();
      const times = { createdAt: at, updatedAt: at };
      const project = { id: newId(), name, defaultTimeout: DEFAULT_TIMEOUT, concurrency, ...times };
      const row = await store.addProject({ project, limits: checkedLimits(limits), at });
      if (row) return { project: await shown(row) };
      throw new Fault('PROJECT_NAME_TAKEN', `A project named "${name}" already exists.`, { name });
    },

    async listAllProjects() {
      const rows = await store.listProjects({ at: now() });
      return { projects: await Promise.all(rows.map(shown)) };
    },

    async setProjectLimits({ project, limits }) {
      const row = await store.setLimits({ project, limits: checkedLimits(limits), at: now() });
      if (!row) throw notFound('Project', project);
      return { project: await shown(row) };
    },

    async createApiKey({ project, name: given }) {
      const name = checkedName(given, 0);
      const { id: projectId } = await find(project);
      const { key, publicId } = newApiKey();
      await store.addApiKey({ hash: hashOf(key), projectId, publicId, name, at: now() });
      return { key, apiKey: keyToProto(stored(await store.getApiKey(publicId), publicId)) };
    },

    async listApiKeys({ project }) {
      const projectId = project === '' ? undefined : (await find(project)).id;
      return { apiKeys: (await store.listApiKeys(projectId)).map(keyToProto) };
    },

    async revokeApiKey({ id }) {
      const row = stored(await store.revokeApiKey({ id, at: now() }), id);
      forgetKey(id);
      return { apiKey: keyToProto(row) };
    },
  };

  async function find(project: string): Promise<{ id: string }> {
    const found = await store.findProject(project);
    if (!found) throw notFound('Project', project);
    return found;
  }
}

function stored(row: ApiKeyRow | undefined, id: string): ApiKeyRow {
  if (!row) throw notFound('API key', id);
  return row;
}

function checkedName(given: string, min: number): string {
  const name = given.trim();
  if (name.length >= min && name.length <= NAME_MAX && !/\p{Cc}/u.test(name)) return name;
  throw invalidField('name', `must be ${min} to ${NAME_MAX} characters, none of them a control.`);
}

function checkedLimits(limits: ProjectLimits | undefined): LimitChange {
  const within = (name: keyof ProjectLimits, max: number): number | undefined => {
    const value = limits?.[name];
    if (value === undefined || (value >= 1 && value <= max)) return value;
    throw invalidField(name, `must be 1 to ${max}.`);
  };
  return {
    sessions: within('sessions', CONCURRENCY_MAX),
    invocations: within('invocations', CONCURRENCY_MAX),
    queue: within('queue', QUEUE_MAX),
    quotas: QUOTA_NAMES.flatMap((quota) => {
      const value = within(quota, QUOTA_MAX);
      return value === undefined ? [] : [{ quota, value }];
    }),
  };
}

function toProto(
  row: OperatedRow,
  { queueMax, quotas }: { queueMax: number; quotas: QuotaLimits },
): Omit<OperatedProject, 'storage'> {
  return {
    project: projectOf(row),
    limits: {
      sessions: row.concurrency,
      invocations: row.invocationsMax,
      queue: row.queueMax ?? queueMax,
      ...quotas,
    },
    sessions: row.sessions,
    invocations: row.invocations,
    queued: row.queued,
    browserMinutes: row.browserMinutes,
    proxyBytes: row.proxyBytes,
  };
}

function keyToProto(row: ApiKeyRow): ApiKey {
  const time = (at: number | null) => (at === null ? undefined : new Date(at));
  return {
    id: row.id,
    projectId: row.projectId,
    name: row.name,
    createdAt: new Date(row.createdAt),
    lastUsedAt: time(row.lastUsedAt),
    revokedAt: time(row.revokedAt),
  };
}
