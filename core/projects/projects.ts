/**
 * Projects: the owner of all other resources. An API key sees its own project only; other projects
 * are not found.
 */

import type { Project, ProjectServiceService } from '../../proto/gen/tabern/v1/projects.pb.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import type { ProjectRow } from '../store/types/projects.ts';
import type { Store } from '../store/types.ts';
import type { Quotas } from './quotas.ts';

export function projectService(options: {
  store: Store;
  quotas: Pick<Quotas, 'usage'>;
  now: () => number;
}): Service<typeof ProjectServiceService, ProjectCaller> {
  const { store, quotas, now } = options;

  async function find(id: string, { projectId }: ProjectCaller): Promise<ProjectRow> {
    const row = id === projectId ? await store.getProject(id) : undefined;
    return orNotFound(row, 'Project', id);
  }

  return {
    async listProjects(_, caller) {
      return { projects: [toProto(await find(caller.projectId, caller))] };
    },
    async getProject({ id }, caller) {
      return { project: toProto(await find(id, caller)) };
    },
    async getProjectUsage({ id }, caller) {
      await find(id, caller);
      const [used, storage] = await Promise.all([
        store.projectUsage({ id, at: now() }),
        quotas.usage(id),
      ]);
      return { ...used, storage };
    },
  };
}

export function toProto(row: ProjectRow): Project {
  const { id, name, defaultTimeout, concurrency } = row;
  const times = { createdAt: new Date(row.createdAt), updatedAt: new Date(row.updatedAt) };
  return { id, ...times, name, ownerId: id, defaultTimeout, concurrency };
}
