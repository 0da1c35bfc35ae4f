/**
 * Functions and versions in PostgreSQL; builds.ts writes them. The newest id is the newest row
 * (UUID v7).
 */
import type { FunctionOps } from '../../types/functions.ts';
import { pages, statements } from '../engine/statements.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

const FUNCTION = `id, project_id AS "projectId", name, created_at AS "createdAt",
  updated_at AS "updatedAt"`;
const VERSION = `id, project_id AS "projectId", function_id AS "functionId", build_id AS "buildId",
  session_config AS "sessionConfig", params_schema AS "paramsSchema", created_at AS "createdAt"`;
const PUBLISHED = 'project_id = @projectId AND deleted_at IS NULL';
/** Of a function that was not deleted. Index versions_by_function. */
const OF_FUNCTION = `versions WHERE function_id = @functionId AND project_id = @projectId
  AND EXISTS (SELECT 1 FROM functions WHERE id = function_id AND deleted_at IS NULL)`;

export function functionOps(tx: Tx): InReads<FunctionOps> {
  const { row } = statements(tx);
  return {
    getFunction: row(`SELECT ${FUNCTION} FROM functions WHERE id = @id AND ${PUBLISHED}`),
    // Index functions_by_project.
    listFunctions: pages(tx, { columns: FUNCTION, from: `functions WHERE ${PUBLISHED}` }),
    getVersion: row(`
      SELECT ${VERSION} FROM versions WHERE id = @id AND project_id = @projectId
        AND EXISTS (SELECT 1 FROM functions WHERE id = function_id AND deleted_at IS NULL)`),
    listVersions: pages(tx, { columns: VERSION, from: OF_FUNCTION }),
    newestVersion: row(`SELECT ${VERSION} FROM ${OF_FUNCTION} ORDER BY id DESC LIMIT 1`),
  };
}
