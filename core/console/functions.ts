/** Functions, their versions and the logs of runs and builds, as the console shows them. */
import type { ConsoleServiceService } from '../../proto/gen/tabern/v1/console.pb.ts';
import { inRange, orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { pathId } from '../common/ids.ts';
import type { ByIdWanted } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';
import type { CursorOwner } from './cursor.ts';
import { cursorAfter, listOf } from './filters.ts';
import { type FunctionFigures, functionFigures, HOURS } from './function-figures.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;
type Options = { store: Store; now: () => number };
type Asked = { limit?: number | undefined; cursor?: string | undefined };

/** Behind every UUID. */
const LAST_ID = 'g';
/** Source: console.proto. */
const LINES_MAX = 1_000;
/** Numbers of lines are below it. */
const NUMBER_MAX = 2 ** 32 - 1;
const NO_RUNS: FunctionFigures = {
  hours: Array.from({ length: HOURS }, () => 0),
  ended: 0,
  failed: 0,
  p50Ms: undefined,
  p95Ms: undefined,
};

export function consoleFunctions({
  store,
  now,
}: Options): Pick<Handlers, 'listFunctions' | 'getFunction' | 'listVersions' | 'listLogLines'> {
  const figures = functionFigures({ store, now });
  return {
    async listFunctions(asked, { projectId }) {
      const owner = { projectId, list: 'functions' };
      const wanted = byId(owner, asked);
      const [rows, { byFunction, counted, countedFrom }] = await Promise.all([
        store.consoleFunctions({ ...wanted, limit: wanted.limit + 1 }),
        figures(projectId),
      ]);
      const { shown, nextCursor } = pageOf(owner, rows, wanted.limit);
      return {
        functions: shown.map(({ versionId, buildId, ...row }) => ({
          ...row,
          ...(byFunction.get(row.id) ?? NO_RUNS),
          ...timesOf(row),
          versionId: versionId ?? undefined,
          buildId: buildId ?? undefined,
        })),
        nextCursor,
        counted,
        countedFrom: countedFrom === undefined ? undefined : new Date(countedFrom),
      };
    },

    async getFunction({ id: text }, { projectId }) {
      const id = pathId('id', text);
      const found = await store.consoleFunction({ id, projectId });
      const row = orNotFound(found, 'Function', id);
      return {
        id,
        name: row.name,
        ...timesOf(row),
        versionId: row.versionId ?? undefined,
        paramsSchemaJson: row.paramsSchema ?? undefined,
        invocationId: row.invocationId ?? undefined,
        lastParamsJson: row.lastParams ?? undefined,
      };
    },

    async listVersions({ id: text, ...asked }, { projectId }) {
      const functionId = pathId('id', text);
      const owner = { projectId, list: `versions/${functionId}` };
      const wanted = byId(owner, asked);
      const found = await store.consoleVersions({
        ...wanted,
        functionId,
        limit: wanted.limit + 1,
      });
      const rows = orNotFound(found, 'Function', functionId);
      const { shown, nextCursor } = pageOf(owner, rows, wanted.limit);
      return {
        versions: shown.map((row) => ({
          ...row,
          createdAt: new Date(row.createdAt),
          archiveBytes: row.archiveBytes ?? undefined,
          bundleBytes: row.bundleBytes ?? undefined,
          bundleSha256: row.bundleSha256 ?? undefined,
        })),
        nextCursor,
      };
    },

    async listLogLines({ id: text, from: asked = 0 }, { projectId }) {
      const id = pathId('id', text);
      const from = inRange('from', asked, { max: NUMBER_MAX });
      const found = await store.consoleLogLines({ id, projectId, from, max: LINES_MAX + 1 });
      const rows = orNotFound(found, 'Invocation or build', id);
      const lines = rows.slice(0, LINES_MAX).map(({ at, ...line }) => ({ ...line, timestamp: at }));
      const last = lines.at(-1);
      const next = last === undefined ? from : last.number + 1;
      return { lines, next, hasMore: rows.length > lines.length };
    },
  };
}

/** Throws INVALID_FIELD and INVALID_CURSOR. */
function byId(owner: CursorOwner, asked: Asked): ByIdWanted {
  const { projectId, limit, before } = listOf(owner, asked);
  return { projectId, limit, beforeId: before?.id ?? LAST_ID };
}

type Row = { id: string; createdAt: number };

/** Of one row more than the page has. */
function pageOf<R extends Row>(owner: CursorOwner, rows: readonly R[], limit: number) {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const isMore = rows.length > limit && last !== undefined;
  const next = isMore ? { at: last.createdAt, id: last.id } : undefined;
  return { shown, nextCursor: cursorAfter(owner, { rows: [], next }) };
}

function timesOf({ createdAt, updatedAt }: { createdAt: number; updatedAt: number }) {
  return { createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) };
}
