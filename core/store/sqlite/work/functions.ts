/**
 * Functions and versions in SQLite; builds.ts writes them. The newest id is the newest row (UUID
 * v7).
 */
import type { FunctionOps, FunctionRow, VersionRow } from '../../types/functions.ts';
import type { Tx } from '../engine/transaction.ts';

const FUNCTION = `id, project_id AS projectId, name, created_at AS createdAt,
  updated_at AS updatedAt`;
const VERSION = `id, project_id AS projectId, function_id AS functionId, build_id AS buildId,
  session_config AS sessionConfig, params_schema AS paramsSchema, created_at AS createdAt`;

export function functionOps({ db }: Tx): FunctionOps {
  const byId = db.prepare<[object], FunctionRow>(`
    SELECT ${FUNCTION} FROM functions WHERE id = @id AND project_id = @projectId`);
  const page = db.prepare<[object], FunctionRow>(`
    SELECT ${FUNCTION} FROM functions WHERE project_id = @projectId
    ORDER BY id DESC LIMIT @limit OFFSET @offset`); // index functions_by_project
  const total = db
    .prepare<[object], number>('SELECT COUNT(*) FROM functions WHERE project_id = @projectId')
    .pluck();
  const version = db.prepare<[object], VersionRow>(`
    SELECT ${VERSION} FROM versions WHERE id = @id AND project_id = @projectId`);
  // Index versions_by_function.
  const ofFunction = 'function_id = @functionId AND project_id = @projectId';
  const versions = db.prepare<[object], VersionRow>(`
    SELECT ${VERSION} FROM versions WHERE ${ofFunction}
    ORDER BY id DESC LIMIT @limit OFFSET @offset`);
  const versionTotal = db
    .prepare<[object], number>(`SELECT COUNT(*) FROM versions WHERE ${ofFunction}`)
    .pluck();
  const newest = db.prepare<[object], VersionRow>(`
    SELECT ${VERSION} FROM versions WHERE ${ofFunction} ORDER BY id DESC LIMIT 1`);

  return {
    getFunction: (wanted) => byId.get(wanted),
    listFunctions: (wanted) => ({ rows: page.all(wanted), total: total.get(wanted) ?? 0 }),
    getVersion: (wanted) => version.get(wanted),
    listVersions: (wanted) => ({
      rows: versions.all(wanted),
      total: versionTotal.get(wanted) ?? 0,
    }),
    newestVersion: (wanted) => newest.get(wanted),
  };
}
