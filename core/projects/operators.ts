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
import { Fault, invalidField } from '../../proto/rpc/errors.ts';
import { dateOf } from '../api/answers.ts';
import { type ForgetKey, hashOf, newApiKey } from '../api/authentication.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { MachineCaller, Service } from '../api/interceptors.ts';
import { newId } from '../common/ids.ts';
import type { ApiKeyRow, LimitChange, OperatedRow, ProjectRow } from '../store/types/projects.ts';
import type { Store } from '../store/types.ts';
import type { ConsoleLogins } from './console-logins.ts';
import { toProto as projectOf } from './projects.ts';
import { QUOTA_NAMES, type Quotas } from './quotas.ts';

/** In characters. Ours: as for contexts. */
const NAME_MAX = 128;
/** In seconds: the default timeout of sessions. Source: proto/spec/sessions.md 1. */
export const DEFAULT_TIMEOUT = 900;

type Options = {
  store: Store;
  now: () => number;
  /** Limits of a project without settings of its own. */
  concurrency: number;
  queueMax: number;
  quotas: Quotas;
  /** Removes a revoked key from the cache. */
  forgetKey: ForgetKey;
  logins: Pick<ConsoleLogins, 'codes'>;
};

export function operatorService(
  options: Options,
): Omit<Service<typeof OperatorServiceService, MachineCaller>, 'createBackup'> {
  const { store, now, concurrency, queueMax, quotas, forgetKey, logins } = options;

  async function shown(row: OperatedRow): Promise<OperatedProject> {
    const { sessions, invocations, queued, browserMinutes, proxyBytes } = row;
    const [own, storage] = await Promise.all([quotas.limits(row.id), quotas.usage(row.id)]);
    const limits = {
      sessions: row.concurrency,
      invocations: row.invocationsMax,
      queue: row.queueMax ?? queueMax,
      ...own,
    };
    const used = { sessions, invocations, queued, browserMinutes, proxyBytes, storage };
    return { project: projectOf(row), limits, ...used };
  }

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
      return { project: await shown(orNotFound(row, 'Project', project)) };
    },

    async createApiKey({ project, name: given }) {
      const name = checkedName(given, 0);
      const { id: projectId } = await find(project);
      const { key, publicId } = newApiKey();
      await store.addApiKey({ hash: hashOf(key), projectId, publicId, name, at: now() });
      const row = orNotFound(await store.getApiKey(publicId), 'API key', publicId);
      return { key, apiKey: keyToProto(row) };
    },

    async listApiKeys({ project }) {
      const projectId = project === '' ? undefined : (await find(project)).id;
      return { apiKeys: (await store.listApiKeys(projectId)).map(keyToProto) };
    },

    async revokeApiKey({ id }) {
      const row = orNotFound(await store.revokeApiKey({ id, at: now() }), 'API key', id);
      forgetKey(id);
      return { apiKey: keyToProto(row) };
    },

    async createConsoleCode({ project: given }) {
      const project = await find(given);
      const { code, lifeMs } = logins.codes.add({ kind: 'project', projectId: project.id });
      return { code, expiresAt: new Date(now() + lifeMs), project: projectOf(project) };
    },

    async createOperatorCode() {
      const { code, lifeMs } = logins.codes.add({ kind: 'operator' });
      return { code, expiresAt: new Date(now() + lifeMs) };
    },
  };

  async function find(project: string): Promise<ProjectRow> {
    return orNotFound(await store.findProject(project), 'Project', project);
  }
}

/** Trimmed. Throws INVALID_FIELD. */
export function checkedName(given: string, min: number): string {
  const name = given.trim();
  if (name.length >= min && name.length <= NAME_MAX && !/\p{Cc}/u.test(name)) return name;
  throw invalidField('name', `must be ${min} to ${NAME_MAX} characters, none of them a control.`);
}

function checkedLimits(limits: ProjectLimits | undefined): LimitChange {
  const within = (name: keyof ProjectLimits, max: number): number | undefined => {
    const value = limits?.[name];
    return value === undefined ? undefined : inRange(name, value, { min: 1, max });
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

function keyToProto({ createdAt, lastUsedAt, revokedAt, ...row }: ApiKeyRow): ApiKey {
  const times = { lastUsedAt: dateOf(lastUsedAt), revokedAt: dateOf(revokedAt) };
  return { ...row, createdAt: new Date(createdAt), ...times };
}
