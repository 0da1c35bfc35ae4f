/** Read access to functions and their versions. Builds create them: core/runners/leases.ts. */

import type {
  FunctionMessage,
  FunctionServiceService,
  LogLine,
  Version,
} from '../../proto/gen/tabern/v1/functions.pb.ts';
import { notFound } from '../../proto/rpc/errors.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readOffsets } from '../api/pagination.ts';
import { pathId } from '../common/ids.ts';
import type { BuiltFunction, FunctionRow, VersionRow } from '../store/types/functions.ts';
import type { LogLineRow } from '../store/types/leases.ts';
import type { Store } from '../store/types.ts';
import { jsonOf, type ShowJson } from './json-values.ts';

export type FunctionService = Service<typeof FunctionServiceService, ProjectCaller>;

type FunctionNames = 'listFunctions' | 'getFunction' | 'listVersions' | 'getVersion';

export function functionHandlers({
  store,
}: {
  store: Store;
}): Pick<FunctionService, FunctionNames> {
  return {
    async listFunctions(request, { projectId }) {
      const { rows, total } = await store.listFunctions({ projectId, ...readOffsets(request) });
      return { data: rows.map(functionToProto), total };
    },

    async getFunction(request, { projectId }) {
      const id = pathId('id', request.id);
      const row = await store.getFunction({ id, projectId });
      if (!row) throw notFound('Function', id);
      return { function: functionToProto(row) };
    },

    async listVersions(request, { projectId, call }) {
      const functionId = pathId('functionId', request.functionId);
      const page = readOffsets(request);
      const [found, { rows, total }] = await Promise.all([
        store.getFunction({ id: functionId, projectId }),
        store.listVersions({ functionId, projectId, ...page }),
      ]);
      if (!found) throw notFound('Function', functionId);
      const show = jsonOf(call);
      return { results: rows.map((row) => versionToProto(row, show)), total };
    },

    async getVersion(request, { projectId, call }) {
      const id = pathId('id', request.id);
      const row = await store.getVersion({ id, projectId });
      if (!row) throw notFound('Version', id);
      return { version: versionToProto(row, jsonOf(call)) };
    },
  };
}

function functionToProto(row: FunctionRow): FunctionMessage {
  return {
    id: row.id,
    projectId: row.projectId,
    name: row.name,
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.updatedAt),
    createdVersion: undefined,
  };
}

/** A function in the build that created this version. */
export function builtToProto(built: BuiltFunction, show: ShowJson): FunctionMessage {
  const createdVersion = versionToProto(built.version, show);
  return { ...functionToProto(built.function), createdVersion };
}

function versionToProto(row: VersionRow, show: ShowJson): Version {
  const [config, schema] = [show(row.sessionConfig), show(row.paramsSchema)];
  return {
    id: row.id,
    projectId: row.projectId,
    functionId: row.functionId,
    functionBuildId: row.buildId,
    sessionCreateParams: config.value,
    sessionCreateParamsJson: config.text,
    userParamsSchema: schema.value,
    userParamsSchemaJson: schema.text,
    createdAt: new Date(row.createdAt),
    updatedAt: new Date(row.createdAt),
  };
}

export function logToProto({ message, at, level }: LogLineRow): LogLine {
  return { message, timestamp: at, level };
}
