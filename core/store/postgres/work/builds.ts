/** Builds in PostgreSQL. Their transitions: core/store/operations/builds.ts. */
import type { BuildStatements } from '../../operations/builds.ts';
import { BUILD, openStates, statesBefore } from '../../operations/states.ts';
import type { Read, Steps } from '../../operations/steps.ts';
import type {
  BuildOps,
  BuildRow,
  BuiltFunction,
  FunctionRow,
  VersionRow,
} from '../../types/functions.ts';
import { inStates, pages, statements } from '../engine/statements.ts';
import { type InReads, mapped } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';

const COLUMNS = `id, project_id AS "projectId", entrypoint, status, cause, created_at AS
  "createdAt",
  updated_at AS "updatedAt", started_at AS "startedAt", ended_at AS "endedAt", expires_at AS
  "expiresAt"`;

export function buildStatements(tx: Tx): BuildStatements {
  const { row, exists, returned } = statements(tx);
  return {
    ...publishStatements(tx),
    insert: returned(`
      INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, status, created_at,
        updated_at, expires_at)
      VALUES (@id, @projectId, @entrypoint, @archiveBlobId, 'PENDING', @at, @at, @expiresAt)
      RETURNING ${COLUMNS}`),
    isPending: exists(`SELECT 1 FROM builds WHERE id = ? AND status = 'PENDING'`),
    start: row(`
      UPDATE builds SET status = 'RUNNING', started_at = @at, updated_at = @at,
        expires_at = @expiresAt
      WHERE id = @id AND status ${inStates(statesBefore(BUILD, 'RUNNING'))}
      RETURNING ${COLUMNS}`),
    end: row(`
      UPDATE builds SET status = @status, cause = @cause, bundle_blob_id = @bundleBlobId,
        ended_lease_id = @leaseId, ended_at = @at, updated_at = @at
      WHERE id = @id AND status ${inStates(openStates(BUILD))}
      RETURNING ${COLUMNS}`),
    endedBy: exists('SELECT 1 FROM builds WHERE ended_lease_id = ?'),
    built: builtBy(tx),
    ...deletionStatements(tx),
  };
}

function publishStatements(tx: Tx): Pick<BuildStatements, 'upsertFunction' | 'insertVersion'> {
  const { returnedValue, write } = statements(tx);
  return {
    upsertFunction: returnedValue(`
      INSERT INTO functions (id, project_id, name, created_at, updated_at)
      VALUES (@functionId, @projectId, @name, @at, @at)
      ON CONFLICT (project_id, name) DO UPDATE SET updated_at = excluded.updated_at
      RETURNING id`),
    insertVersion: write(`
      INSERT INTO versions (id, project_id, function_id, build_id, session_config, params_schema,
        created_at)
      VALUES (@versionId, @projectId, @functionId, @buildId, @sessionConfig, @paramsSchema, @at)`),
  };
}

/** A deleted function's name is free. It gets one with "/", which no function may have. */
function deletionStatements(
  tx: Tx,
): Pick<BuildStatements, 'isPublished' | 'openInvocations' | 'deleteFunction' | 'detachSecrets'> {
  const { exists, number, write } = statements(tx);
  return {
    isPublished: exists(`
      SELECT 1 FROM functions
      WHERE id = @id AND project_id = @projectId AND deleted_at IS NULL`),
    // Open work has a row in jobs, which are few.
    openInvocations: number(`
      SELECT COUNT(*) FROM jobs JOIN invocations ON invocations.id = jobs.id
      WHERE jobs.kind = 'invocation' AND jobs.project_id = @projectId
        AND invocations.function_id = @id`),
    deleteFunction: write(`
      UPDATE functions SET deleted_at = @at, updated_at = @at, name = 'deleted/' || id
      WHERE id = @id AND project_id = @projectId`),
    detachSecrets: write('DELETE FROM function_secrets WHERE function_id = ?'),
  };
}

/** Not a build whose functions were all deleted: few are not removed yet. */
export const SHOWN = `id NOT IN (
  SELECT versions.build_id
  FROM functions AS gone JOIN versions ON versions.function_id = gone.id
  WHERE gone.deleted_at IS NOT NULL AND gone.project_id = @projectId AND NOT EXISTS (
    SELECT 1 FROM versions AS kept JOIN functions ON functions.id = kept.function_id
    WHERE kept.build_id = versions.build_id AND functions.deleted_at IS NULL))`;

export function buildViews(tx: Tx): InReads<Omit<BuildOps, 'createBuild'>> {
  const built = builtBy(tx);
  function* withFunctions(build: BuildRow): Steps<BuiltBuild> {
    return { build, functions: yield* built(build.id) };
  }
  const byId = statements(tx).row<[object], BuildRow>(`
    SELECT ${COLUMNS} FROM builds WHERE id = @id AND project_id = @projectId AND ${SHOWN}`);
  // Index builds_by_project.
  const page = pages<Parameters<BuildOps['listBuilds']>[0], BuildRow>(tx, {
    columns: COLUMNS,
    from: `builds WHERE project_id = @projectId AND (@status::TEXT IS NULL OR status = @status)
      AND ${SHOWN}`,
  });
  return {
    *getBuild(wanted) {
      const build = yield* byId(wanted);
      return build && (yield* withFunctions(build));
    },
    *listBuilds(wanted) {
      const { rows, total } = yield* page(wanted);
      const builds: BuiltBuild[] = [];
      for (const row of rows) builds.push(yield* withFunctions(row));
      return { rows: builds, total };
    },
  };
}

type BuiltBuild = { build: BuildRow; functions: BuiltFunction[] };

type Joined = VersionRow &
  Pick<FunctionRow, 'name'> & { functionCreatedAt: number; functionUpdatedAt: number };

function builtBy(tx: Tx): (buildId: string) => Read<BuiltFunction[]> {
  // Index versions_by_build.
  const joined = statements(tx).rows<[string], Joined>(`
    SELECT versions.id AS id, versions.function_id AS "functionId", versions.build_id AS "buildId",
      versions.session_config AS "sessionConfig", versions.params_schema AS "paramsSchema",
      versions.created_at AS "createdAt", functions.project_id AS "projectId", functions.name AS
      name,
      functions.created_at AS "functionCreatedAt", functions.updated_at AS "functionUpdatedAt"
    FROM versions JOIN functions ON functions.id = versions.function_id
    WHERE versions.build_id = ? AND functions.deleted_at IS NULL ORDER BY functions.name`);
  return (buildId) => mapped(joined(buildId), (rows) => rows.map(builtFrom));
}

function builtFrom({ name, functionCreatedAt, functionUpdatedAt, ...version }: Joined) {
  const { functionId: id, projectId } = version;
  const times = { createdAt: functionCreatedAt, updatedAt: functionUpdatedAt };
  return { function: { id, projectId, name, ...times }, version };
}
