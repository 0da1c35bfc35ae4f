/**
 * Functions and their versions as the console shows them. Their ids are UUID v7: the newest id is
 * the newest row, so pages are by id.
 */
import type {
  ConsoleFunctionRow,
  ConsoleOps,
  ConsoleVersionRow,
  FunctionRunRow,
  InvokedFunctionRow,
} from '../../types/console.ts';
import { plannedAnew } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

/** Ours: with retention a function keeps fewer; reading an index of 100 rows costs nothing. */
const VERSIONS_COUNTED_MAX = 101;

type Names = 'consoleFunctions' | 'consoleFunctionRuns' | 'consoleFunction' | 'consoleVersions';

const FUNCTION = `functions.id AS id, functions.name AS name, functions.created_at AS "createdAt",
  functions.updated_at AS "updatedAt", newest.id AS "versionId"`;
/** Index versions_by_function. */
const NEWEST = `LEFT JOIN versions AS newest ON newest.id = (
  SELECT id FROM versions WHERE function_id = functions.id ORDER BY id DESC LIMIT 1)`;

export function consoleFunctionOps(tx: Tx): InReads<Pick<ConsoleOps, Names>> {
  const { row, rows, exists } = plannedAnew(tx);
  // Index functions_by_project.
  const functions = rows<[object], ConsoleFunctionRow>(`
    SELECT ${FUNCTION}, newest.build_id AS "buildId",
      (SELECT COUNT(*) FROM (SELECT 1 FROM versions
        WHERE function_id = functions.id LIMIT ${VERSIONS_COUNTED_MAX}) AS few) AS versions
    FROM functions ${NEWEST}
    WHERE functions.project_id = @projectId AND functions.deleted_at IS NULL
      AND functions.id < @beforeId
    ORDER BY functions.id DESC LIMIT @max`);
  // The index has all columns: no row is read.
  const runs = rows<[object], FunctionRunRow>(`
    SELECT id, function_id AS "functionId", status, created_at AS "createdAt",
      started_at AS "startedAt", ended_at AS "endedAt"
    FROM invocations
    WHERE project_id = @projectId AND created_at >= @from
      AND (created_at, id) < (@beforeAt, @beforeId)
    ORDER BY created_at DESC, id DESC LIMIT @max`);
  const byId = row<[object], InvokedFunctionRow>(`
    SELECT ${FUNCTION}, newest.params_schema AS "paramsSchema", ran.id AS "invocationId",
      ran.params AS "lastParams"
    FROM functions ${NEWEST}
    LEFT JOIN invocations AS ran ON ran.id = (
      SELECT id FROM invocations
      WHERE function_id = functions.id ORDER BY created_at DESC, id DESC LIMIT 1)
    WHERE functions.id = @id AND functions.project_id = @projectId
      AND functions.deleted_at IS NULL`);
  const isOwn = exists<[object]>(`
    SELECT 1 FROM functions
    WHERE id = @functionId AND project_id = @projectId AND deleted_at IS NULL`);
  const versions = rows<[object], ConsoleVersionRow>(`
    SELECT versions.id AS id, versions.created_at AS "createdAt", build_id AS "buildId",
      builds.entrypoint AS entrypoint, archive.size AS "archiveBytes", bundle.size AS "bundleBytes",
      bundle.sha256 AS "bundleSha256", params_schema IS NOT NULL AS "hasSchema"
    FROM versions JOIN builds ON builds.id = build_id
    LEFT JOIN blobs AS archive ON archive.id = builds.archive_blob_id
    LEFT JOIN blobs AS bundle ON bundle.id = builds.bundle_blob_id
    WHERE function_id = @functionId AND versions.id < @beforeId
    ORDER BY versions.id DESC LIMIT @max`);
  return {
    consoleFunctions: ({ limit, ...wanted }) => functions({ ...wanted, max: limit }),
    consoleFunctionRuns: ({ before, ...wanted }) => {
      return runs({ ...wanted, beforeAt: before.at, beforeId: before.id });
    },
    consoleFunction: byId,
    *consoleVersions({ limit, ...wanted }) {
      if (!(yield* isOwn(wanted))) return undefined;
      return yield* versions({ ...wanted, max: limit });
    },
  };
}
