/** Functions and versions: reads, and deletion. Builds create them: core/runners/leases.ts. */

import type { Log } from '../../proto/common/log.ts';
import type {
  FunctionMessage,
  FunctionServiceService,
  LogLine,
  Version,
} from '../../proto/gen/tabern/v1/functions.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { resourceOf } from '../api/answers.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { readOffsets } from '../api/pagination.ts';
import { pathId } from '../common/ids.ts';
import type { Blobs } from '../files/blobs.ts';
import type { BuiltFunction, FunctionRow, VersionRow } from '../store/types/functions.ts';
import type { LogLineRow } from '../store/types/leases.ts';
import type { Store } from '../store/types.ts';
import { jsonOf, type ShowJson } from './json-values.ts';

export type FunctionService = Service<typeof FunctionServiceService, ProjectCaller>;

type FunctionNames =
  | 'listFunctions'
  | 'getFunction'
  | 'deleteFunction'
  | 'listVersions'
  | 'getVersion';

type Options = {
  store: Store;
  files: Pick<Blobs, 'remove'>;
  log: Log;
  now: () => number;
  /** Aborts when core closes. */
  closing: AbortSignal;
};

/** Rows in one operation: others commit in between. As core/maintenance/retention.ts. */
const BATCH = 500;
/** Operations before the response. Ours: 10,000 rows, some 0.1 s. */
const BATCHES_MAX = 20;

export function functionHandlers(options: Options): Pick<FunctionService, FunctionNames> {
  const { store, now, closing } = options;
  return {
    async listFunctions(request, { projectId }) {
      const { rows, total } = await store.listFunctions({ projectId, ...readOffsets(request) });
      return { data: rows.map(functionToProto), total };
    },

    async getFunction(request, { projectId }) {
      const id = pathId('id', request.id);
      const row = await store.getFunction({ id, projectId });
      return { function: functionToProto(orNotFound(row, 'Function', id)) };
    },

    /** The function is deleted when it is marked; retention removes what is left. */
    async deleteFunction(request, { projectId, call }) {
      const id = pathId('id', request.id);
      const found = await store.deleteFunction({ id, projectId, at: now() });
      const { open } = orNotFound(found, 'Function', id);
      if (open > 0) throw inUse(id, open);
      await purge(options, id, AbortSignal.any([call.signal, closing]));
      return {};
    },

    async listVersions(request, { projectId, call }) {
      const functionId = pathId('functionId', request.functionId);
      const page = readOffsets(request);
      const [found, { rows, total }] = await Promise.all([
        store.getFunction({ id: functionId, projectId }),
        store.listVersions({ functionId, projectId, ...page }),
      ]);
      orNotFound(found, 'Function', functionId);
      const show = jsonOf(call);
      return { results: rows.map((row) => versionToProto(row, show)), total };
    },

    async getVersion(request, { projectId, call }) {
      const id = pathId('id', request.id);
      const row = orNotFound(await store.getVersion({ id, projectId }), 'Version', id);
      return { version: versionToProto(row, jsonOf(call)) };
    },
  };
}

/** Removes rows and files of a deleted function. A failure is logged: the deletion succeeded. */
async function purge(
  { store, files, log }: Options,
  functionId: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    for (let batch = 0; batch < BATCHES_MAX && !signal.aborted; batch += 1) {
      const { rows, dropped } = await store.purgeFunctions({ functionId, max: BATCH });
      await files.remove(...dropped);
      if (rows < BATCH) return;
    }
  } catch (error) {
    log.error({ err: error, functionId }, 'removing a deleted function failed: retention goes on');
  }
}

function inUse(id: string, open: number): Fault {
  const count = open === 1 ? '1 invocation is' : `${open} invocations are`;
  const message =
    `The function cannot be deleted: ${count} pending or running. ` +
    'Wait for the end or cancel first.';
  return new Fault('FUNCTION_IN_USE', message, { id, open });
}

function functionToProto({ name, ...row }: FunctionRow): FunctionMessage {
  return { ...resourceOf(row), name, createdVersion: undefined };
}

/** A function in the build that created this version. */
export function builtToProto(built: BuiltFunction, show: ShowJson): FunctionMessage {
  const createdVersion = versionToProto(built.version, show);
  return { ...functionToProto(built.function), createdVersion };
}

function versionToProto(row: VersionRow, show: ShowJson): Version {
  const [config, schema] = [show(row.sessionConfig), show(row.paramsSchema)];
  return {
    ...resourceOf({ ...row, updatedAt: row.createdAt }),
    functionId: row.functionId,
    functionBuildId: row.buildId,
    sessionCreateParams: config.value,
    sessionCreateParamsJson: config.text,
    userParamsSchema: schema.value,
    userParamsSchemaJson: schema.text,
  };
}

export function logToProto({ message, at, level }: LogLineRow): LogLine {
  return { message, timestamp: at, level };
}
